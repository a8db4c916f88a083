#include "backends/cpu/convolution/skipping_convolution.h"

namespace cputrain::cpu {
namespace {

bool is_3x3(const ConvolutionPlace& place) {
  return place.layer().kernel == 3 && place.layer().stride == 1 &&
         (!place.pool || place.pool->halves());
}

SparseShape inner_shape(const ConvolutionPlace& place) {
  return {place.src.layout,
          place.wide,
          place.dst.layout,
          place.block.rows,
          place.block.columns,
          place.pool.has_value(),
          place.block.relu || place.block.pooled_relu};
}

bool first_possible(const ConvolutionPlace& place) {
  const auto small = [](const model::PadAmount& pad) { return pad.before <= 2 && pad.after <= 2; };
  return place.block.image && place.pool && !place.wide.padded() && small(place.block.rows) &&
         small(place.block.columns);
}

first_layer::Shape first_shape(const ConvolutionPlace& place) {
  const ConvolutionBlock& block = place.block;
  return {block.src_shape.height, block.src_shape.width, block.rows,          block.columns,
          place.layer().filters,  block.image->scale,    block.image->offset, block.pooled_relu};
}

}  // namespace

bool SkippingConvolution::possible(const ConvolutionPlace& place) {
  return is_3x3(place) &&
         (first_possible(place) || SparseConvolution::possible(inner_shape(place)));
}

SkippingConvolution::SkippingConvolution(const Planning& planning, const ConvolutionPlace& place)
    : place_(place) {
  if (first_possible(place)) {
    first_.emplace(first_shape(place), planning.threads);
    kernel_layout_ = image_kernel_desc(place.wide);
  } else {
    inner_.emplace(inner_shape(place), planning.threads);
    kernel_layout_ = blocked_kernel_desc(place.src.layout, place.wide);
  }
  plan_memory(planning);
}

void SkippingConvolution::plan_memory(const Planning& planning) {
  compute::MemoryPlan& memory = planning.memory;
  const int forward = planning.forward_time(place_.op);
  const int backward = planning.backward_time(place_.op);
  const std::size_t scatter = first_ ? first_->scratch_bytes() : inner_->scatter_bytes();
  forward_scratch_ = memory.add(scatter, forward);
  if (place_.learns) {
    weights_scratch_ =
        memory.add(first_ ? first_->scratch_bytes() : inner_->gather_bytes(), backward);
  }
  if (!place_.src.wants_diff) return;
  data_scratch_ = memory.add(scatter, backward);
  turned_block_ = memory.add(kernel_layout_.get_size(), backward);
}

void SkippingConvolution::bind(const Bindings& bindings) {
  if (!first_) src_value_ = bindings.at(place_.src.value);
  dst_value_ = bindings.at(place_.dst.value);
  weights_ = bindings.weights(place_.first_parameter);
  forward_memory_ = bindings.at<std::byte>(forward_scratch_);
  if (place_.bias) bias_ = bindings.weights(place_.first_parameter + 1);
  if (!place_.dst.wants_diff) return;
  dst_diff_ = bindings.at(place_.dst.diff);
  if (place_.pool) winners_ = bindings.at<std::uint8_t>(place_.winners);
  if (place_.learns) {
    weights_memory_ = bindings.at<std::byte>(weights_scratch_);
    diff_weights_ = bindings.gradients(place_.first_parameter);
    if (place_.bias) diff_bias_ = bindings.gradients(place_.first_parameter + 1);
  }
  if (!place_.src.wants_diff) return;
  src_diff_ = bindings.at(place_.src.diff);
  data_memory_ = bindings.at<std::byte>(data_scratch_);
  turned_ = bindings.at(turned_block_);
}

void SkippingConvolution::forward(const Execution& execution, Images images,
                                  ConvolutionTimes& times) {
  const TimeSpan span(times.convolution.forward);
  if (first_) {
    return first_->forward(images, weights_, bias_, dst_value_, winners_, forward_memory_);
  }
  times.convolution.density = inner_->forward(execution.images, src_value_, weights_, bias_,
                                              dst_value_, winners_, forward_memory_);
}

void SkippingConvolution::backward_weights(const Execution& execution, Images images) {
  const bool adds = execution.accumulate == compute::Accumulate::add;
  if (first_) {
    return first_->backward_weights(images, {dst_value_, winners_, dst_diff_}, diff_weights_,
                                    diff_bias_, adds, weights_memory_);
  }
  inner_->backward_weights(execution.images, src_value_, {dst_diff_, dst_value_, winners_},
                           diff_weights_, diff_bias_, adds, weights_memory_);
}

void SkippingConvolution::backward(const Execution& execution, Images images, bool weights,
                                   bool data, ConvolutionTimes& times) {
  system::Stopwatch watch;
  if (weights) backward_weights(execution, images);
  times.convolution.backward_weights += watch.lap();
  if (!data) return;
  inner_->turn_kernel(weights_, turned_);
  times.convolution.gradient_density =
      inner_->backward_data(execution.images, {dst_diff_, dst_value_, winners_}, turned_, src_diff_,
                            place_.src.adds, data_memory_);
  times.convolution.backward_data += watch.lap();
}

}  // namespace cputrain::cpu
