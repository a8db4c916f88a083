#include "backends/cpu/sparse/first_convolution.h"

#include <algorithm>

#include "backends/cpu/kernels/parallel.h"
#include "backends/cpu/kernels/sum.h"
#include "core/casts.h"

namespace cputrain::cpu {
namespace {

std::size_t lines(std::size_t floats) { return (floats + 15) / 16 * 16; }

}  // namespace

FirstConvolution::FirstConvolution(const first_layer::Shape& shape, int threads)
    : shape_(shape), threads_(to_size(threads)), set_(best_instruction_set()) {}

std::size_t FirstConvolution::scratch_of_thread() const {
  return lines(first_layer::scratch_size(shape_));
}

std::size_t FirstConvolution::sums_of_part() const { return lines(first_layer::sums_size(shape_)); }

std::size_t FirstConvolution::parts() const {
  constexpr std::size_t kTasksPerThread = 16;
  return threads_ == 1 ? 1 : kTasksPerThread * threads_;
}

std::size_t FirstConvolution::map_size() const {
  return to_size(shape_.window_rows()) * to_size(shape_.window_columns()) *
         to_size(shape_.channels);
}

std::size_t FirstConvolution::scratch_bytes() const {
  return (threads_ * scratch_of_thread() + parts() * sums_of_part()) * sizeof(float);
}

/// Images are cut so that threads end together.
void FirstConvolution::forward(Images images, const float* weights, const float* bias, float* dst,
                               std::uint8_t* winners, std::byte* scratch) const {
  const std::size_t parts = threads_ == 1 ? 1 : 4;
  const auto rows = to_size(shape_.window_rows());
  auto* const memory = reinterpret_cast<float*>(scratch);
  parallel_tasks(images.size() * parts, [&](std::size_t i, std::size_t thread) {
    const std::size_t image = i / parts, part = i % parts, at = image * map_size();
    first_layer::forward(set_, shape_, images[image], weights, bias, to_int(rows * part / parts),
                         to_int(rows * (part + 1) / parts), memory + thread * scratch_of_thread(),
                         dst + at, winners ? winners + at : nullptr);
  });
}

void FirstConvolution::backward_weights(Images images, const first_layer::Outputs& outputs,
                                        float* diff_weights, float* diff_bias, bool adds,
                                        std::byte* scratch) const {
  const auto rows = to_size(shape_.window_rows());
  const std::size_t all = images.size() * rows;
  auto* const memory = reinterpret_cast<float*>(scratch);
  float* const sums = memory + threads_ * scratch_of_thread();
  parallel_tasks(parts(), [&](std::size_t part, std::size_t thread) {
    float* const own = sums + part * sums_of_part();
    std::fill_n(own, sums_of_part(), 0.0f);
    const std::size_t end = all * (part + 1) / parts();
    for (std::size_t row = all * part / parts(); row < end;) {
      const std::size_t image = row / rows, first = row % rows, at = image * map_size();
      const std::size_t last = std::min(rows, first + end - row);
      first_layer::backward_weights(
          set_, shape_, images[image], {outputs.dst + at, outputs.winners + at, outputs.diff + at},
          to_int(first), to_int(last), memory + thread * scratch_of_thread(), own);
      row += last - first;
    }
  });
  add_parts(sums, parts(), sums_of_part());
  first_layer::write_gradients(set_, shape_, sums, adds, diff_weights, diff_bias);
}

}  // namespace cputrain::cpu
