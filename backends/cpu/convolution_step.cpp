#include "backends/cpu/convolution_step.h"

#include <algorithm>

namespace cputrain {
namespace {

std::optional<MaxPoolShape> pool_shape(const ConvolutionBlock& block, const SampleLayout& src,
                                       const SampleLayout& dst) {
  if (!block.pool) return std::nullopt;
  const auto& layer = std::get<MaxPool>(block.pool->layer);
  return MaxPoolShape{src,
                      dst,
                      layer.size,
                      layer.stride,
                      pad_amount(layer.padding, src.shape.height, layer.size, layer.stride),
                      pad_amount(layer.padding, src.shape.width, layer.size, layer.stride),
                      block.pooled_relu};
}

ConvolutionPlace place_of(const Planning& planning, int step, const ConvolutionBlock& block,
                          const Source& src, const Map& dst, std::size_t first_parameter) {
  const SampleLayout wide{block.convolution->dst, dst.layout.block};
  return {.step = step,
          .block = block,
          .source = src,
          .src = src.map,
          .dst = dst,
          .wide = wide,
          .pool = pool_shape(block, wide, dst.layout),
          .winners = {},
          .first_parameter = first_parameter,
          .bias = std::get<Convolution>(block.convolution->layer).bias,
          .learns = planning.training() && !block.convolution->frozen};
}

std::optional<SparseShape> sparse_shape(const ConvolutionPlace& place) {
  const auto& layer = std::get<Convolution>(place.block.convolution->layer);
  if (layer.kernel != 3 || layer.stride != 1) return std::nullopt;
  if (place.pool && !place.pool->halves()) return std::nullopt;
  const SparseShape shape{place.src.layout,
                          place.wide,
                          place.dst.layout,
                          place.block.rows,
                          place.block.columns,
                          place.pool.has_value(),
                          place.block.relu || place.block.pooled_relu};
  return SparseConvolution::possible(shape) ? std::optional(shape) : std::nullopt;
}

bool any(const ConvolutionMethods& methods, ConvolutionMethod method) {
  return std::ranges::find(methods.by_direction, method) != methods.by_direction.end();
}

}  // namespace

ConvolutionStep::ConvolutionStep(const Planning& planning, int step, const ConvolutionBlock& block,
                                 const Source& src, const Map& dst, std::size_t first_parameter)
    : place_(place_of(planning, step, block, src, dst, first_parameter)) {
  MemoryPlan& memory = planning.memory;
  const int forward = planning.forward_time(step), backward = planning.backward_time(step);
  if (place_.pool && dst.wants_diff) {
    place_.winners =
        memory.add(dst.layout.size() * static_cast<std::size_t>(planning.largest()), forward);
    memory.use(place_.winners, backward);
  }
  const auto sparse = sparse_shape(place_);
  methods_ = fixed_methods(sparse.has_value(), place_.pool.has_value(), planning.winograd);
  std::optional<dnnl::memory::desc> kernel_layout;
  if (sparse && any(methods_, ConvolutionMethod::sparse)) {
    sparse_.emplace(*sparse, planning.threads);
    kernel_layout = blocked_kernel_desc(place_.src.layout, place_.wide);
    plan_sparse(planning);
  }
  if (any(methods_, ConvolutionMethod::direct)) {
    direct_.emplace(planning, place_, false, kernel_layout);
    kernel_layout = direct_->kernel_layout();
  }
  if (any(methods_, ConvolutionMethod::winograd)) {
    winograd_.emplace(planning, place_, true, kernel_layout);
    kernel_layout = winograd_->kernel_layout();
  }
  kernel_layout_ = *kernel_layout;
  times_.convolution.macs = block.macs;
  planning.use_forward(step, src, dst);
  planning.use_backward(step, src, dst);
  if (place_.learns) memory.use(src.map.value, backward);
  if (dst.wants_diff && (block.relu || block.pooled_relu)) memory.use(dst.value, backward);
}

void ConvolutionStep::plan_sparse(const Planning& planning) {
  MemoryPlan& memory = planning.memory;
  const int backward = planning.backward_time(place_.step);
  scatter_forward_ = memory.add(sparse_->scatter_bytes(), planning.forward_time(place_.step));
  if (place_.learns) gather_ = memory.add(sparse_->gather_bytes(), backward);
  if (!place_.src.wants_diff) return;
  scatter_backward_ = memory.add(sparse_->scatter_bytes(), backward);
  turned_block_ =
      memory.add(blocked_kernel_desc(place_.src.layout, place_.wide).get_size(), backward);
}

std::vector<std::unique_ptr<ParameterFormat>> ConvolutionStep::formats() const {
  const auto& layer = std::get<Convolution>(place_.block.convolution->layer);
  std::vector<std::unique_ptr<ParameterFormat>> formats;
  formats.push_back(make_kernel_format(kernel_layout_, layer.kernel,
                                       place_.block.src_shape.channels, layer.filters));
  if (place_.bias) formats.push_back(make_vector_format(static_cast<std::size_t>(layer.filters)));
  return formats;
}

void ConvolutionStep::bind(const Bindings& bindings) {
  if (direct_) direct_->bind(bindings);
  if (winograd_) winograd_->bind(bindings);
  if (!sparse_) return;
  src_value_ = bindings.at(place_.src.value);
  dst_value_ = bindings.at(place_.dst.value);
  weights_ = bindings.weights(place_.first_parameter);
  forward_scratch_ = bindings.at<std::byte>(scatter_forward_);
  if (place_.bias) bias_value_ = bindings.weights(place_.first_parameter + 1);
  if (!place_.dst.wants_diff) return;
  dst_diff_ = bindings.at(place_.dst.diff);
  if (place_.pool) winners_ = bindings.at<std::uint8_t>(place_.winners);
  if (place_.learns) {
    gather_scratch_ = bindings.at<std::byte>(gather_);
    diff_weights_ = bindings.gradients(place_.first_parameter);
    if (place_.bias) diff_bias_ = bindings.gradients(place_.first_parameter + 1);
  }
  if (place_.src.wants_diff) {
    src_diff_ = bindings.at(place_.src.diff);
    backward_scratch_ = bindings.at<std::byte>(scatter_backward_);
    turned_ = bindings.at(turned_block_);
  }
}

LibraryConvolution& ConvolutionStep::library(ConvolutionMethod method) {
  return method == ConvolutionMethod::winograd ? *winograd_ : *direct_;
}

void ConvolutionStep::forward(const Execution& execution) {
  const ConvolutionMethod method = methods_[Direction::forward];
  if (method != ConvolutionMethod::sparse) {
    return library(method).forward(execution, times_);
  }
  const TimeSpan span(times_.convolution.forward);
  times_.convolution.density = sparse_->forward(execution.images, src_value_, weights_, bias_value_,
                                                dst_value_, winners_, forward_scratch_);
}

/// What is left to the library runs first, since it may change the gradient of dst in place.
void ConvolutionStep::backward(const Execution& execution) {
  if (!place_.dst.wants_diff) return;
  for (const auto method : {ConvolutionMethod::direct, ConvolutionMethod::winograd}) {
    const bool weights = place_.learns && methods_[Direction::backward_weights] == method;
    const bool data = place_.src.wants_diff && methods_[Direction::backward_data] == method;
    if (weights || data) library(method).backward(execution, weights, data, times_);
  }
  if (sparse_) backward_by_sparse(execution);
}

void ConvolutionStep::backward_by_sparse(const Execution& execution) {
  Stopwatch watch;
  const SparseConvolution::Outputs outputs{dst_diff_, dst_value_, winners_};
  if (place_.learns && methods_[Direction::backward_weights] == ConvolutionMethod::sparse) {
    sparse_->backward_weights(execution.images, src_value_, outputs, diff_weights_, diff_bias_,
                              execution.accumulate == Accumulate::add, gather_scratch_);
    times_.convolution.backward_weights += watch.lap();
  }
  if (place_.src.wants_diff && methods_[Direction::backward_data] == ConvolutionMethod::sparse) {
    sparse_->turn_kernel(weights_, turned_);
    times_.convolution.gradient_density = sparse_->backward_data(
        execution.images, outputs, turned_, src_diff_, place_.source.adds, backward_scratch_);
    times_.convolution.backward_data += watch.lap();
  }
}

std::string ConvolutionStep::describe(ConvolutionMethod method, Direction direction) const {
  if (method == ConvolutionMethod::sparse) return "skips zeros";
  const ConvolutionOperations& made =
      (method == ConvolutionMethod::winograd ? *winograd_ : *direct_).operations();
  switch (direction) {
    case Direction::forward:
      return made.forward.implementation;
    case Direction::backward_weights:
      return made.backward_weights.implementation;
    case Direction::backward_data:
      return made.backward_data.implementation;
  }
  return "";
}

void ConvolutionStep::append_times(std::vector<LayerTime>& times) const {
  const auto words = [&](Direction direction) { return describe(methods_[direction], direction); };
  LayerTime time = times_.convolution;
  time.name = place_.block.convolution->name;
  time.algorithm = words(Direction::forward);
  if (place_.learns) time.algorithm += ", weights " + words(Direction::backward_weights);
  if (place_.src.wants_diff) time.algorithm += ", data " + words(Direction::backward_data);
  times.push_back(time);
  if (!place_.pool) return;
  LayerTime pool = times_.pool;
  pool.name = place_.block.pool->name;
  const bool fused = methods_[Direction::forward] == ConvolutionMethod::sparse;
  pool.algorithm = fused                      ? "in the convolution"
                   : place_.block.pooled_relu ? "own, with ReLU"
                                              : "own";
  times.push_back(pool);
}

}  // namespace cputrain
