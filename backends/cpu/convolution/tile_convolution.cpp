#include "backends/cpu/convolution/tile_convolution.h"

#include <algorithm>

#include "backends/cpu/amx/availability.h"
#include "core/casts.h"

namespace cputrain::cpu {
namespace {

int parts_of(const Planning& planning) {
  return planning.kernels.float_tiles == KernelChoice::Tiles::none ? 1 : 3;
}

/// Null where this machine has none, or they are not wanted.
const amx::Kernels* kernels_of(const Planning& planning) {
  const KernelChoice& choice = planning.kernels;
  return amx::find_kernels(parts_of(planning) == 1 ? choice.tiles : choice.float_tiles);
}

amx::ConvolutionShape shape_of(const Planning& planning, const ConvolutionPlace& place) {
  amx::ConvolutionShape shape{.src = place.src.layout,
                              .wide = place.wide,
                              .dst = place.dst.layout,
                              .rows = place.block.rows,
                              .columns = place.block.columns,
                              .pool = place.pool.has_value(),
                              .relu = place.block.relu || place.block.pooled_relu,
                              .kernel = place.layer().kernel,
                              .parts = parts_of(planning)};
  if (place.block.image) shape.image = *place.block.image;
  return shape;
}

}  // namespace

bool TileConvolution::possible(const Planning& planning, const ConvolutionPlace& place) {
  return place.layer().stride == 1 && (!place.pool || place.pool->halves()) &&
         kernels_of(planning) && amx::Convolution::possible(shape_of(planning, place));
}

TileConvolution::TileConvolution(const Planning& planning, const ConvolutionPlace& place)
    : place_(place),
      parts_(parts_of(planning)),
      convolution_(shape_of(planning, place), planning.threads, *kernels_of(planning)),
      kernel_layout_(place.block.image ? image_kernel_desc(place.wide)
                                       : blocked_kernel_desc(place.src.layout, place.wide,
                                                             place.layer().kernel)) {
  compute::MemoryPlan& memory = planning.memory;
  forward_scratch_ = memory.add(convolution_.pass_bytes(), planning.forward_time(place.op));
  const std::size_t data = place.src.wants_diff ? convolution_.pass_bytes() : 0;
  const std::size_t weights = place.learns ? convolution_.gradient_bytes() : 0;
  if (data + weights == 0) return;
  backward_scratch_ = memory.add(std::max(data, weights), planning.backward_time(place.op));
}

void TileConvolution::bind(const Bindings& bindings) {
  if (!reads_images()) src_value_ = bindings.at(place_.src.value);
  dst_value_ = bindings.at(place_.dst.value);
  weights_ = bindings.weights(place_.first_parameter);
  if (place_.bias) bias_ = bindings.weights(place_.first_parameter + 1);
  forward_memory_ = bindings.at<std::byte>(forward_scratch_);
  if (!place_.dst.wants_diff) return;
  dst_diff_ = bindings.at(place_.dst.diff);
  backward_memory_ = bindings.at<std::byte>(backward_scratch_);
  if (place_.pool) winners_ = bindings.at<std::uint8_t>(place_.winners);
  if (place_.src.wants_diff) src_diff_ = bindings.at(place_.src.diff);
  if (!place_.learns) return;
  diff_weights_ = bindings.gradients(place_.first_parameter);
  if (place_.bias) diff_bias_ = bindings.gradients(place_.first_parameter + 1);
}

amx::Source TileConvolution::source(Images images) const {
  return reads_images() ? amx::Source(images.data()) : amx::Source(src_value_);
}

bool TileConvolution::forward(const Execution& execution, Images images, ConvolutionTimes& times) {
  const TimeSpan span(times.convolution.forward);
  const auto count = to_size(execution.images);
  if (!in_range(src_value_, count * place_.src.layout.size()) ||
      !in_range(weights_, kernel_layout_.get_size() / sizeof(float))) {
    return false;
  }
  convolution_.forward(execution.images, source(images), weights_, bias_, dst_value_, winners_,
                       forward_memory_);
  return true;
}

bool TileConvolution::backward(const Execution& execution, Images images, bool weights, bool data,
                               ConvolutionTimes& times) {
  const amx::Convolution::Outputs outputs{dst_diff_, dst_value_, winners_};
  const auto count = to_size(execution.images);
  system::Stopwatch watch;
  if (!in_range(dst_diff_, count * place_.dst.layout.size()) ||
      (weights && !in_range(src_value_, count * place_.src.layout.size())) ||
      (data && !in_range(weights_, kernel_layout_.get_size() / sizeof(float)))) {
    return false;
  }
  if (weights) {
    convolution_.backward_weights(execution.images, source(images), outputs, diff_weights_,
                                  diff_bias_, execution.adds(), backward_memory_);
  }
  times.convolution.backward_weights += watch.lap();
  if (!data) return true;
  convolution_.backward_data(execution.images, outputs, weights_, src_diff_, place_.src.adds,
                             backward_memory_);
  times.convolution.backward_data += watch.lap();
  return true;
}

}  // namespace cputrain::cpu
