#include "backends/cpu/convolution/convolution_op.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "backends/cpu/kernels/on_threads.h"
#include "backends/cpu/ops/input_op.h"
#include "core/casts.h"

namespace cputrain::cpu {
namespace {

std::vector<ConvolutionMethod> possible_methods(const Planning& planning,
                                                const ConvolutionPlace& place) {
  std::vector<ConvolutionMethod> methods{ConvolutionMethod::direct};
  // Blocks that are there for emulated tiles alone fit no other kernels of ours.
  const bool usual = place.dst.layout.block == preferred_block();
  if (usual && planning.kernels.winograd && winograd_pays(place, planning.largest())) {
    methods.push_back(ConvolutionMethod::winograd);
  }
  if (planning.kernels.bf16 && has_bf16(planning, place, planning.largest())) {
    methods.push_back(ConvolutionMethod::bf16);
  }
  // Those below know floats alone, and no groups.
  if (is_narrow(place.dst) || place.layer().groups != 1) return methods;
  if (TileConvolution::possible(planning, place)) methods.push_back(ConvolutionMethod::tiles);
  if (usual && planning.kernels.skip_zeros && SkippingConvolution::possible(place)) {
    methods.push_back(ConvolutionMethod::sparse);
  }
  return methods;
}

/// Without tiles of floats where what is quickest is tried: they never come unmeasured.
std::vector<ConvolutionMethod> methods_by_rule(const Planning& planning,
                                               std::vector<ConvolutionMethod> possible) {
  const KernelChoice& choice = planning.kernels;
  if (choice.measure && choice.float_tiles != KernelChoice::Tiles::none) {
    std::erase(possible, ConvolutionMethod::tiles);
  }
  return possible;
}

template <class Number>
void add_numbers(const std::byte* values, std::byte* sums, std::size_t first, std::size_t count) {
  add_on_threads(reinterpret_cast<const Number*>(values) + first,
                 reinterpret_cast<Number*>(sums) + first, count);
}

/// sums += values for some images of maps like `map`, on all threads.
void add_images(const Activation& map, const Range& images, const std::byte* values,
                std::byte* sums) {
  const std::size_t first = images.begin * map.layout.size();
  const std::size_t count = images.size() * map.layout.size();
  is_narrow(map) ? add_numbers<Bf16>(values, sums, first, count)
                 : add_numbers<float>(values, sums, first, count);
}

}  // namespace

ConvolutionOp::ConvolutionOp(const Planning& planning, int op, const ConvolutionBlock& block,
                             const Source& src, const std::vector<Source>& added,
                             const Activation& dst, std::size_t first_parameter)
    : Op(block.convolution->name),
      dnnl_(planning.dnnl),
      place_(place_convolution(planning, op, block, src, added, dst, first_parameter)) {
  const auto possible = possible_methods(planning, place_);
  const auto by_rule = methods_by_rule(planning, possible);
  methods_ = fixed_methods(by_rule, place_.pool.has_value(),
                           PooledWinograd::possible(place_, planning.usual()));
  forward_stays_ = !measures_forward(by_rule, place_.pool.has_value());
  // A trial ends in backward(), so there is none without it.
  if (dst.wants_diff && planning.kernels.measure && possible.size() > 1 &&
      worth_measuring(block.macs, planning.usual())) {
    trials_.emplace(possible);
    make_candidates(planning, possible);
  } else {
    // Numbers that are out of range of tiles of floats go the direct way.
    make_candidates(planning, {methods_.by_direction.begin(), methods_.by_direction.end()});
    if (tiles_ && tiles_->needs_others() && !direct_) {
      direct_.emplace(planning, place_, ConvolutionMethod::direct, kernel_layout_);
    }
  }
  times_.convolution.macs = block.macs;
  planning.use_backward(op, src, dst);
  planning.memory.use(dst.value, planning.forward_time(op));
  for (const Source& part : added) {
    planning.use_forward(op, part, dst);
    planning.use_backward(op, part, dst);
  }
  const int backward = planning.backward_time(op);
  if (dst.wants_diff && (block.relu || block.pooled_relu)) {
    planning.memory.use(dst.value, backward);
  }
  // Kernels of the first layer read bytes, so the source's floats need no memory.
  const bool reads_src = direct_ || winograd_ || bf16_ ||
                         (skipping_ && !skipping_->reads_images()) ||
                         (tiles_ && !tiles_->reads_images());
  if (!reads_src) return;
  planning.memory.use(src.value, planning.forward_time(op));
  if (place_.learns) planning.memory.use(src.value, backward);
}

void ConvolutionOp::make_candidates(const Planning& planning,
                                    const std::vector<ConvolutionMethod>& methods) {
  // All methods share the kernel in the arena. The sparse kernels and those of tiles know one
  // layout only; without them the first method takes the one that its primitive prefers, and the
  // others copy.
  std::optional<dnnl::memory::desc> kernel_layout;
  const auto with = [&](ConvolutionMethod method) {
    return std::ranges::find(methods, method) != methods.end();
  };
  if (with(ConvolutionMethod::sparse)) {
    skipping_.emplace(planning, place_);
    kernel_layout = skipping_->kernel_layout();
  }
  if (with(ConvolutionMethod::tiles)) {
    tiles_.emplace(planning, place_);
    kernel_layout = tiles_->kernel_layout();
  }
  const PiecewiseConvolution* first = nullptr;
  const auto make = [&](ConvolutionMethod method) {
    if (!with(method)) return;
    auto& made = piecewise(method).emplace(planning, place_, method, kernel_layout);
    kernel_layout = made.kernel_layout();
    if (first) made.share_memory(planning.memory, *first);
    if (!first) first = &made;
  };
  if (with(ConvolutionMethod::winograd) && PooledWinograd::possible(place_, planning.usual())) {
    pooled_winograd_.emplace(planning, place_);
  }
  make(ConvolutionMethod::direct);
  // It knows the layout of the kernels that skip zeros.
  const bool forward_alone = pooled_winograd_ && skipping_ && !trials_;
  if (!forward_alone) make(ConvolutionMethod::winograd);
  make(ConvolutionMethod::bf16);
  kernel_layout_ = *kernel_layout;
}

std::vector<std::unique_ptr<compute::ParameterFormat>> ConvolutionOp::formats() const {
  const model::Convolution& layer = place_.layer();
  std::vector<std::unique_ptr<compute::ParameterFormat>> formats;
  formats.push_back(make_kernel_format(kernel_layout_, layer, place_.block.src_shape.channels));
  if (place_.bias) formats.push_back(make_vector_format(to_size(layer.filters)));
  return formats;
}

void ConvolutionOp::bind(const Bindings& planned) {
  const DnnlBindings bindings{planned, dnnl_};
  if (direct_ || winograd_ || bf16_) src_value_ = bindings.at(place_.src.value);
  dst_value_ = bindings.at<std::byte>(place_.dst.value);
  if (place_.dst.wants_diff) dst_diff_ = bindings.at<std::byte>(place_.dst.diff);
  if (!place_.added.empty()) {
    const Source& added = place_.added.front();
    added_value_ = bindings.at<std::byte>(added.value);
    const bool separate = added.wants_diff && !added.shares_diff;
    if (separate) added_diff_ = bindings.at<std::byte>(added.diff);
  }
  if (skipping_) skipping_->bind(bindings);
  if (tiles_) tiles_->bind(bindings);
  if (direct_) direct_->bind(bindings);
  if (winograd_) winograd_->bind(bindings);
  if (pooled_winograd_) pooled_winograd_->bind(bindings);
  if (bf16_) bf16_->bind(bindings);
}

bool ConvolutionOp::has(ConvolutionMethod method) const {
  switch (method) {
    case ConvolutionMethod::direct:
      return direct_.has_value();
    case ConvolutionMethod::winograd:
      return winograd_.has_value();
    case ConvolutionMethod::sparse:
      return skipping_.has_value();
    case ConvolutionMethod::bf16:
      return bf16_.has_value();
    case ConvolutionMethod::tiles:
      return tiles_.has_value();
  }
  return false;
}

std::optional<PiecewiseConvolution>& ConvolutionOp::piecewise(ConvolutionMethod method) {
  assert(method != ConvolutionMethod::sparse && method != ConvolutionMethod::tiles);
  return method == ConvolutionMethod::bf16       ? bf16_
         : method == ConvolutionMethod::winograd ? winograd_
                                                 : direct_;
}

/// Kernels that skip zeros read the bytes, all others planes of numbers.
void ConvolutionOp::split_images_once(double& seconds) {
  if (!place_.block.image || std::exchange(split_, true)) return;
  const TimeSpan span(seconds);
  split_images(*place_.block.image, place_.src.layout, images_, src_value_);
}

void ConvolutionOp::forward(const Execution& execution) {
  if (is_trial(execution)) {
    const ConvolutionMethod candidate = trials_->candidate();
    take({{candidate, candidate, candidate}});
    before_trial_ = spent();
  }
  images_ = execution.pixels;
  split_ = false;
  forward_by(methods_[Direction::forward], execution);
}

void ConvolutionOp::forward_by(ConvolutionMethod method, const Execution& execution) {
  const Range all{0, to_size(execution.images)};
  if (method == ConvolutionMethod::tiles) {
    if (tiles_->forward(execution, images_, times_)) return finish(execution, all);
    method = ConvolutionMethod::direct;  // of numbers that tiles cannot take
  }
  if (method == ConvolutionMethod::sparse) {
    skipping_->forward(execution, images_, times_);
    return finish(execution, all);
  }
  if (method == ConvolutionMethod::winograd && pooled_winograd_) {
    pooled_winograd_->forward(execution, times_);
    return finish(execution, all);
  }
  split_images_once(times_.convolution.forward);
  piecewise(method)->forward(execution, times_,
                             [&](const Range& images) { finish(execution, images); });
}

void ConvolutionOp::finish(const Execution& execution, const Range& images) {
  if (added_value_) {
    const TimeSpan span(times_.sum.forward);
    add_images(place_.dst, images, added_value_, dst_value_);
  }
  if (value_listener_) value_listener_->value_written(execution, images);
}

bool ConvolutionOp::pools_in_forward() const {
  const ConvolutionMethod method = methods_[Direction::forward];
  return method == ConvolutionMethod::sparse || method == ConvolutionMethod::tiles ||
         (method == ConvolutionMethod::winograd && pooled_winograd_);
}

/// Kernels that skip zeros and those of tiles run last, since the others may change the gradient of
/// dst in place.
void ConvolutionOp::backward(const Execution& execution) {
  if (!place_.dst.wants_diff) return;
  if (added_diff_) pass_sums_gradient_on(execution);
  using enum ConvolutionMethod;
  for (const ConvolutionMethod method : {direct, winograd, bf16, tiles, sparse}) {
    const bool weights = place_.learns && methods_[Direction::backward_weights] == method;
    const bool data = place_.src.wants_diff && methods_[Direction::backward_data] == method;
    if (weights || data) backward_by(method, execution, weights, data);
  }
  if (is_trial(execution)) end_trial();
}

void ConvolutionOp::backward_by(ConvolutionMethod method, const Execution& execution, bool weights,
                                bool data) {
  const auto written = [&](const Range& images) {
    if (data && gradient_listener_) gradient_listener_->gradient_written(execution, images);
  };
  const Range all{0, to_size(execution.images)};
  if (method == ConvolutionMethod::tiles) {
    if (tiles_->backward(execution, images_, weights, data, times_)) return written(all);
    method = ConvolutionMethod::direct;
  }
  if (method == ConvolutionMethod::sparse) {
    skipping_->backward(execution, images_, weights, data, times_);
    return written(all);
  }
  split_images_once(times_.before_backward);
  piecewise(method)->backward(execution, weights, data, times_, written);
}

/// The gradient of a sum is that of each part.
void ConvolutionOp::pass_sums_gradient_on(const Execution& execution) {
  const TimeSpan span(times_.sum.backward_data);
  const Range images{0, to_size(execution.images)};
  if (place_.added.front().adds) return add_images(place_.dst, images, dst_diff_, added_diff_);
  const std::size_t bytes = place_.dst.bytes(execution.images);
  parallel_ranges(bytes, [&](std::size_t begin, std::size_t end) {
    std::copy(dst_diff_ + begin, dst_diff_ + end, added_diff_ + begin);
  });
}

void ConvolutionOp::take(ConvolutionMethods methods) {
  if (forward_stays_) methods[Direction::forward] = methods_[Direction::forward];
  methods_ = methods;
}

/// Only the largest micro-batches are timed: another method may be quickest for smaller ones.
bool ConvolutionOp::is_trial(const Execution& execution) const {
  return trying() && execution.most_images && execution.pass.phase == compute::Phase::train;
}

MethodTimes ConvolutionOp::spent() const {
  return {.forward = times_.convolution.forward + times_.pool.forward,
          .weights = times_.convolution.backward_weights,
          .data = times_.convolution.backward_data,
          .unpool = times_.pool.backward_data + times_.before_backward};
}

void ConvolutionOp::end_trial() {
  const MethodTimes now = spent();
  trials_->note({now.forward - before_trial_.forward, now.weights - before_trial_.weights,
                 now.data - before_trial_.data, now.unpool - before_trial_.unpool});
  if (!trials_->running()) take(trials_->best());
}

void ConvolutionOp::use_methods(std::string_view text) {
  ConvolutionMethods found = methods_of(text).value();
  for (std::size_t i = 0; i < found.by_direction.size(); ++i) {
    if (!has(found.by_direction[i])) found.by_direction[i] = methods_.by_direction[i];
  }
  take(found);
  if (trials_) trials_->stop();
}

void ConvolutionOp::try_again() {
  if (trials_) trials_->restart();
}

std::string ConvolutionOp::describe(Direction direction) const {
  const ConvolutionMethod method = methods_[direction];
  if (method == ConvolutionMethod::sparse) return "skips zeros";
  if (method == ConvolutionMethod::tiles) return tiles_->name();
  if (direction == Direction::forward && pools_in_forward()) return "own Winograd";
  const auto& computing = method == ConvolutionMethod::bf16       ? bf16_
                          : method == ConvolutionMethod::winograd ? winograd_
                                                                  : direct_;
  return computing->operations().in(direction).implementation;
}

void ConvolutionOp::append_times(std::vector<compute::LayerTime>& times) const {
  compute::LayerTime time = times_.convolution;
  (place_.src.wants_diff ? time.backward_data : time.backward_weights) += times_.before_backward;
  time.name = place_.block.convolution->name;
  time.algorithm = describe(Direction::forward);
  if (place_.learns) time.weights_algorithm = describe(Direction::backward_weights);
  if (place_.src.wants_diff) time.data_algorithm = describe(Direction::backward_data);
  times.push_back(time);
  if (place_.block.sum) {
    compute::LayerTime sum = times_.sum;
    sum.name = place_.block.sum->name;
    sum.algorithm = "with the convolution";
    times.push_back(sum);
  }
  if (!place_.pool) return;
  compute::LayerTime pool = times_.pool;
  pool.name = place_.block.pool->name;
  pool.algorithm = pools_in_forward()         ? "in the convolution"
                   : place_.block.pooled_relu ? "own, with ReLU"
                                              : "own";
  times.push_back(pool);
}

}  // namespace cputrain::cpu
