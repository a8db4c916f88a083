#include "backends/cpu/convolution/tile_convolution.h"

#include <algorithm>

#include "backends/cpu/amx/availability.h"

namespace cputrain::cpu {
namespace {

amx::ConvolutionShape shape_of(const ConvolutionPlace& place) {
  return {place.src.layout,
          place.wide,
          place.dst.layout,
          place.block.rows,
          place.block.columns,
          place.pool.has_value(),
          place.block.relu || place.block.pooled_relu};
}

}  // namespace

bool TileConvolution::possible(const Planning& planning, const ConvolutionPlace& place) {
  return place.layer().kernel == 3 && place.layer().stride == 1 &&
         (!place.pool || place.pool->halves()) && amx::Convolution::possible(shape_of(place)) &&
         amx::find_kernels(planning.kernels.tiles);
}

TileConvolution::TileConvolution(const Planning& planning, const ConvolutionPlace& place)
    : place_(place),
      convolution_(shape_of(place), planning.threads, *amx::find_kernels(planning.kernels.tiles)),
      kernel_layout_(blocked_kernel_desc(place.src.layout, place.wide)) {
  compute::MemoryPlan& memory = planning.memory;
  forward_scratch_ = memory.add(convolution_.pass_bytes(), planning.forward_time(place.op));
  const std::size_t data = place.src.wants_diff ? convolution_.pass_bytes() : 0;
  const std::size_t weights = place.learns ? convolution_.gradient_bytes() : 0;
  if (data + weights == 0) return;
  backward_scratch_ = memory.add(std::max(data, weights), planning.backward_time(place.op));
}

void TileConvolution::bind(const Bindings& bindings) {
  src_value_ = bindings.at(place_.src.value);
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

void TileConvolution::forward(const Execution& execution, ConvolutionTimes& times) {
  const TimeSpan span(times.convolution.forward);
  convolution_.forward(execution.images, src_value_, weights_, bias_, dst_value_, winners_,
                       forward_memory_);
}

void TileConvolution::backward(const Execution& execution, bool weights, bool data,
                               ConvolutionTimes& times) {
  const amx::Convolution::Outputs outputs{dst_diff_, dst_value_, winners_};
  system::Stopwatch watch;
  if (weights) {
    convolution_.backward_weights(execution.images, src_value_, outputs, diff_weights_, diff_bias_,
                                  execution.adds(), backward_memory_);
  }
  times.convolution.backward_weights += watch.lap();
  if (!data) return;
  convolution_.backward_data(execution.images, outputs, weights_, src_diff_, place_.src.adds,
                             backward_memory_);
  times.convolution.backward_data += watch.lap();
}

}  // namespace cputrain::cpu
