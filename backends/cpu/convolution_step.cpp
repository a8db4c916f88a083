#include "backends/cpu/convolution_step.h"

#include "backends/cpu/input_step.h"

#include <algorithm>
#include <utility>

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

std::optional<first_layer::Shape> first_shape(const ConvolutionPlace& place) {
  const ConvolutionBlock& block = place.block;
  const auto& layer = std::get<Convolution>(block.convolution->layer);
  const auto small = [](const PadAmount& pad) { return pad.before <= 2 && pad.after <= 2; };
  const bool possible = block.picture && layer.kernel == 3 && layer.stride == 1 && place.pool &&
                        place.pool->halves() && !place.wide.padded() && small(block.rows) &&
                        small(block.columns);
  if (!possible) return std::nullopt;
  return first_layer::Shape{block.src_shape.height, block.src_shape.width, block.rows,
                            block.columns,          layer.filters,         block.picture->scale,
                            block.picture->offset,  block.pooled_relu};
}

std::vector<ConvolutionMethod> possible_methods(const Planning& planning,
                                                const ConvolutionPlace& place) {
  std::vector<ConvolutionMethod> methods{ConvolutionMethod::direct};
  if (planning.kernels.winograd && winograd_pays(place, planning.largest())) {
    methods.push_back(ConvolutionMethod::winograd);
  }
  if (planning.kernels.skip_zeros && (sparse_shape(place) || first_shape(place))) {
    methods.push_back(ConvolutionMethod::sparse);
  }
  return methods;
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
  const auto possible = possible_methods(planning, place_);
  methods_ = fixed_methods(possible, place_.pool.has_value());
  if (planning.training() && planning.kernels.measure && possible.size() > 1) {
    trials_.emplace(possible);
    make_candidates(planning, possible);
  } else {
    make_candidates(planning, {methods_.by_direction.front()});
  }
  times_.convolution.macs = block.macs;
  planning.use_forward(step, src, dst);
  planning.use_backward(step, src, dst);
  const bool reads_planes = !first_ || trials_;
  if (place_.learns && reads_planes) memory.use(src.map.value, backward);
  if (dst.wants_diff && (block.relu || block.pooled_relu)) memory.use(dst.value, backward);
}

void ConvolutionStep::make_candidates(const Planning& planning,
                                      const std::vector<ConvolutionMethod>& methods) {
  std::optional<dnnl::memory::desc> kernel_layout;
  const auto with = [&](ConvolutionMethod method) {
    return std::ranges::find(methods, method) != methods.end();
  };
  if (with(ConvolutionMethod::sparse)) {
    if (const auto first = first_shape(place_)) {
      first_.emplace(*first, planning.threads);
      kernel_layout = picture_kernel_desc(place_.wide);
      plan_first(planning);
    } else {
      sparse_.emplace(*sparse_shape(place_), planning.threads);
      kernel_layout = blocked_kernel_desc(place_.src.layout, place_.wide);
      plan_sparse(planning);
    }
  }
  if (with(ConvolutionMethod::direct)) {
    direct_.emplace(planning, place_, false, kernel_layout);
    kernel_layout = direct_->kernel_layout();
  }
  if (with(ConvolutionMethod::winograd)) {
    winograd_.emplace(planning, place_, true, kernel_layout);
    kernel_layout = winograd_->kernel_layout();
  }
  if (direct_ && winograd_) winograd_->share_memory(planning.memory, *direct_);
  kernel_layout_ = *kernel_layout;
}

void ConvolutionStep::plan_first(const Planning& planning) {
  MemoryPlan& memory = planning.memory;
  scatter_forward_ = memory.add(first_->scratch_bytes(), planning.forward_time(place_.step));
  if (!place_.learns) return;
  gather_ = memory.add(first_->scratch_bytes(), planning.backward_time(place_.step));
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
  src_value_ = bindings.at(place_.src.value);
  if (!sparse_ && !first_) return;
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

/// Only the usual number of images tells what is quickest.
bool ConvolutionStep::is_trial(const Execution& execution) const {
  return trying() && execution.size == 0 && execution.pass.phase == Phase::train;
}

MethodTimes ConvolutionStep::spent() const {
  return {.forward = times_.convolution.forward + times_.pool.forward,
          .weights = times_.convolution.backward_weights,
          .data = times_.convolution.backward_data,
          .unpool = times_.pool.backward_data};
}

bool ConvolutionStep::has(ConvolutionMethod method) const {
  switch (method) {
    case ConvolutionMethod::direct:
      return direct_.has_value();
    case ConvolutionMethod::winograd:
      return winograd_.has_value();
    case ConvolutionMethod::sparse:
      return sparse_ || first_;
  }
  return false;
}

void ConvolutionStep::use_methods(std::string_view text) {
  const ConvolutionMethods found = methods_of(text).value();
  for (std::size_t i = 0; i < found.by_direction.size(); ++i) {
    if (has(found.by_direction[i])) methods_.by_direction[i] = found.by_direction[i];
  }
  if (trials_) trials_->stop();
}

void ConvolutionStep::try_again() {
  if (trials_) trials_->restart();
}

void ConvolutionStep::forward(const Execution& execution) {
  if (is_trial(execution)) {
    const ConvolutionMethod candidate = trials_->candidate();
    methods_ = {{candidate, candidate, candidate}};
    before_trial_ = spent();
  }
  pictures_ = execution.batch->images;
  split_ = false;
  const ConvolutionMethod method = methods_[Direction::forward];
  if (method == ConvolutionMethod::sparse) return forward_by_sparse(execution);
  split_pictures_once();
  library(method).forward(execution, times_);
}

void ConvolutionStep::split_pictures_once() {
  if (!place_.block.picture || std::exchange(split_, true)) return;
  const TimeSpan span(times_.convolution.forward);
  split_pictures(*place_.block.picture, place_.src.layout, pictures_, src_value_);
}

void ConvolutionStep::forward_by_sparse(const Execution& execution) {
  const TimeSpan span(times_.convolution.forward);
  if (first_) {
    return first_->forward(pictures_, weights_, bias_value_, dst_value_, winners_,
                           forward_scratch_);
  }
  times_.convolution.density = sparse_->forward(execution.images, src_value_, weights_, bias_value_,
                                                dst_value_, winners_, forward_scratch_);
}

/// What is left to the library runs first, since it may change the gradient of dst in place.
void ConvolutionStep::backward(const Execution& execution) {
  if (!place_.dst.wants_diff) return;
  for (const auto method : {ConvolutionMethod::direct, ConvolutionMethod::winograd}) {
    const bool weights = place_.learns && methods_[Direction::backward_weights] == method;
    const bool data = place_.src.wants_diff && methods_[Direction::backward_data] == method;
    if (!weights && !data) continue;
    split_pictures_once();
    library(method).backward(execution, weights, data, times_);
  }
  if (sparse_ || first_) backward_by_sparse(execution);
  if (!is_trial(execution)) return;
  const MethodTimes now = spent();
  trials_->note({now.forward - before_trial_.forward, now.weights - before_trial_.weights,
                 now.data - before_trial_.data, now.unpool - before_trial_.unpool});
  if (trials_->running()) return;
  methods_ = trials_->best();
}

void ConvolutionStep::backward_by_sparse(const Execution& execution) {
  Stopwatch watch;
  const SparseConvolution::Outputs outputs{dst_diff_, dst_value_, winners_};
  if (place_.learns && methods_[Direction::backward_weights] == ConvolutionMethod::sparse) {
    const bool adds = execution.accumulate == Accumulate::add;
    if (first_) {
      first_->backward_weights(pictures_, {dst_value_, winners_, dst_diff_}, diff_weights_,
                               diff_bias_, adds, gather_scratch_);
    } else {
      sparse_->backward_weights(execution.images, src_value_, outputs, diff_weights_, diff_bias_,
                                adds, gather_scratch_);
    }
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
