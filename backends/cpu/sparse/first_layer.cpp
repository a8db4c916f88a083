#include "backends/cpu/sparse/first_layer.h"

#include "backends/cpu/sparse/first_layer_kernels.h"
#include "backends/cpu/sparse/image_rows.h"
#include "core/casts.h"

namespace cputrain::cpu::first_layer {
namespace {

const Kernels& kernels_for(InstructionSet set) {
  if (set == InstructionSet::avx512) return avx512_kernels();
  return set == InstructionSet::avx2 ? avx2_kernels() : plain_kernels();
}

}  // namespace

std::size_t scratch_size(const Shape& s) {
  return kRowsSeen * row_size(s) + 2 * kMostChannels * list_capacity(s);
}

std::size_t sums_size(const Shape& s) { return to_size(s.channels) * (kSumsOfChannel + 1); }

void forward(InstructionSet set, const Shape& s, const std::uint8_t* image, const float* weights,
             const float* bias, int begin, int end, float* scratch, float* dst,
             std::uint8_t* winners) {
  kernels_for(set).forward(s, image, weights, bias, begin, end, scratch, dst, winners);
}

void backward_weights(InstructionSet set, const Shape& s, const std::uint8_t* image,
                      const Outputs& outputs, int begin, int end, float* scratch, float* sums) {
  kernels_for(set).backward_weights(s, image, outputs, begin, end, scratch, sums);
}

void write_gradients(InstructionSet set, const Shape& s, const float* sums, bool add,
                     float* diff_weights, float* diff_bias) {
  const auto b = to_size(block(set)), channels = to_size(s.channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const float* of_channel = sums + c * kSumsOfChannel;
    for (std::size_t tap = 0; tap < kTaps; ++tap) {
      float& diff = diff_weights[(c / b * kTaps + tap) * b + c % b];
      diff = (add ? diff : 0.0f) + of_channel[tap / kRun * kLanes + tap % kRun];
    }
    if (!diff_bias) continue;
    diff_bias[c] = (add ? diff_bias[c] : 0.0f) + sums[channels * kSumsOfChannel + c];
  }
}

}  // namespace cputrain::cpu::first_layer
