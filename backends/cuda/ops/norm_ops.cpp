#include "backends/cuda/ops/norm_ops.h"

#include <algorithm>

#include "comm/communicator.h"
#include "core/casts.h"

namespace cputrain::cuda {

RankSums::RankSums(comm::Communicator& communicator, int channels)
    : communicator_(communicator),
      channels_(to_size(channels)),
      device_(2 * channels_ * sizeof(double), "sums of ranks"),
      host_((2 * channels_ + 1) * sizeof(double) + 2 * channels_ * sizeof(float)) {}

/// Waits until the device is done with the host's numbers, also those that it was sent before.
void RankSums::fetch(Stream stream, const ChannelSums& own,
                     void (*merge)(Stream, const ChannelSums&, double*)) {
  if (own.parts > 0) {
    merge(stream, own, device_.as<double>());
    copy_async(host_.data(), device_.data(), device_.size(), stream);
  }
  done_.record(stream);
  done_.synchronize();
  if (own.parts == 0) std::ranges::fill(numbers(), 0.0);
}

ChannelSums RankSums::send(Stream stream, double positions) {
  auto* const sent = reinterpret_cast<float*>(numbers().data() + numbers().size());
  std::ranges::transform(numbers().first(2 * channels_), sent,
                         [](double number) { return static_cast<float>(number); });
  copy_async(device_.data(), sent, 2 * channels_ * sizeof(float), stream);
  return {.channels = to_int(channels_),
          .parts = 1,
          .positions = positions,
          .of_part = positions,
          .values = device_.as<float>()};
}

/// Sums of numbers and of their squares add up. In double their difference is exact enough unless
/// the mean is a million times the deviation, which floats do not have.
ChannelSums RankSums::join_moments(Stream stream, const ChannelSums& own) {
  fetch(stream, own, merge_moments);
  numbers().back() = own.positions;
  for (std::size_t c = 0; c < channels_; ++c) {
    const double mean = first()[c];
    first()[c] = own.positions * mean;
    second()[c] += own.positions * mean * mean;
  }
  communicator_.sum(Array::of<double>(numbers()));
  const double positions = numbers().back();
  for (std::size_t c = 0; positions > 0 && c < channels_; ++c) {
    const double mean = first()[c] / positions;
    first()[c] = mean;
    second()[c] = std::max(0.0, second()[c] - positions * mean * mean);
  }
  return send(stream, positions);
}

ChannelSums RankSums::join_slopes(Stream stream, const ChannelSums& own, double positions) {
  fetch(stream, own, merge_slopes);
  communicator_.sum(Array::of<double>(numbers().first(2 * channels_)));
  return send(stream, positions);
}

BatchNormOp::BatchNormOp(const Planning& planning, int op, const model::Graph::Node& node,
                         const AfterBatchNorm& after, const ConvolutionOp* producer,
                         const Source& src, const Activation& dst, std::size_t first_parameter,
                         std::shared_ptr<MovedStatistics> moved)
    : UnaryOp(planning, op, src, dst, planning, node.name,
              std::string("parts of the positions, merged in order") +
                  (after.added ? ", with addition" : "") + (after.relu ? ", with ReLU" : "")),
      after_(after),
      producer_(producer),
      frozen_(node.frozen),
      multiprocessors_(planning.multiprocessors),
      first_parameter_(first_parameter),
      moved_(std::move(moved)) {
  const auto& layer = std::get<model::BatchNorm>(node.layer);
  layer_.channels = channels();
  layer_.epsilon = to_double(layer.epsilon);
  layer_.momentum = to_double(layer.momentum);
  factors_.channels = src.layout.block;

  const bool learns = planning.training() && !frozen_;
  if (learns) first_moved_ = moved_->add(channels());
  if (learns && planning.options.synchronise) {
    ranks_.emplace(*planning.options.synchronise, factors_.channels);
  }
  const std::size_t factors = to_size(ChannelFactors::kRows * factors_.channels);
  const int forward = planning.forward_time(op), backward = planning.backward_time(op);
  factors_block_ = planning.memory.add(factors * sizeof(float), forward);
  forward_sums_block_ = learns ? plan_space(planning, producer, ConvolutionOp::moments, forward)
                               : planning.memory.add(0, forward);
  if (after_.added) {
    planning.use_forward(op, *after_.added, dst);
    planning.use_backward(op, *after_.added, dst);
  }
  if (!dst.wants_diff) return;
  planning.memory.use(factors_block_, backward);
  planning.memory.use(src.value, backward);
  if (masks()) planning.memory.use(dst.value, backward);
}

/// For passes whose sums `maker` does not make.
compute::MemoryPlan::Block BatchNormOp::plan_space(const Planning& planning,
                                                   const ConvolutionOp* maker,
                                                   ConvolutionOp::Beside which, int time) const {
  std::size_t most = 0;
  for (std::size_t i = 0; i < planning.sizes.size(); ++i) {
    if (maker && maker->makes(which, i)) continue;
    most = std::max(most, plan_sums(planning.sizes[i]).count());
  }
  return planning.memory.add(most * sizeof(float), time);
}

void BatchNormOp::plan_slopes(const Planning& planning, int op) {
  if (!sums_slopes()) return;
  backward_sums_block_ =
      plan_space(planning, reader_, ConvolutionOp::slopes, planning.backward_time(op));
}

Formats BatchNormOp::formats() const {
  Formats formats;
  for (int i = 0; i < 4; ++i) add_vector(formats, channels());
  return formats;
}

void BatchNormOp::bind(const Bindings& bindings) {
  UnaryOp::bind(bindings);
  layer_.gamma = bindings.weights(first_parameter_);
  layer_.beta = bindings.weights(first_parameter_ + 1);
  layer_.moving_mean = bindings.weights(first_parameter_ + 2);
  layer_.moving_variance = bindings.weights(first_parameter_ + 3);
  factors_.values = bindings.at(factors_block_);
  forward_sums_ = bindings.at(forward_sums_block_);
  if (after_.added) {
    added_data_ = bindings.value<void>(*after_.added);
    if (!after_.added->shares_diff) added_diff_ = bindings.diff<void>(*after_.added);
  }
  if (!dst_diff_) return;
  if (sums_slopes()) backward_sums_ = bindings.at(backward_sums_block_);
  gradients_.gamma = bindings.gradients(first_parameter_);
  gradients_.beta = bindings.gradients(first_parameter_ + 1);
}

int BatchNormOp::positions(int images) const {
  return images * src_.layout.shape.height * src_.layout.shape.width;
}

ChannelSums BatchNormOp::plan_sums(int images) const {
  return plan_channel_sums(numbers(), positions(images), src_.layout.block, multiprocessors_);
}

BatchNormPass BatchNormOp::pass(int images, bool relu) const {
  return {.positions = positions(images), .factors = factors_, .relu = relu};
}

ChannelSums BatchNormOp::measure(const Execution& execution) {
  if (producer_) {
    const ChannelSums made = producer_->sums(ConvolutionOp::moments, execution);
    if (made.parts > 0) return made;
  }
  ChannelSums sums = plan_sums(execution.images);
  sums.values = forward_sums_;
  measure_channels(stream(), numbers(), sums, src_data_);
  return sums;
}

void BatchNormOp::learn(const ChannelSums& own) {
  const ChannelSums sums = ranks_ ? ranks_->join_moments(stream(), own) : own;
  count_ = sums.positions;
  if (count_ == 0) return;
  finish_statistics(stream(), sums, layer_, factors_, moved_->at(first_moved_, stream()));
}

void BatchNormOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    if (learns(execution.pass)) {
      learn(measure(execution));
    } else {
      use_moving_statistics(stream(), layer_, factors_);
    }
    normalize(stream(), numbers(), pass(execution.images, after_.relu), src_data_, added_data_,
              dst_data_);
  });
}

void BatchNormOp::forward_of_nothing(const Execution& execution) {
  if (ranks_ && learns(execution.pass)) learn({.channels = factors_.channels});
}

NormSlopes BatchNormOp::slopes(const ChannelSums& sums, const Execution& execution) const {
  return {sums, pass(execution.images, after_.relu), src_data_, masks() ? dst_data_ : nullptr};
}

/// Gradients of the parameters are of this rank's images, that of the map is of all ranks'.
void BatchNormOp::sum_slopes_of(const Execution& execution) {
  ChannelSums sums = reader_ ? reader_->sums(ConvolutionOp::slopes, execution) : ChannelSums{};
  if (sums.parts == 0) {
    sums = plan_sums(execution.images);
    sums.values = backward_sums_;
    sum_slopes(stream(), numbers(), slopes(sums, execution), dst_diff_);
  }
  BatchNormGradients own = gradients_;
  own.add = execution.adds();
  finish_slopes(stream(), sums, factors_, own);
  if (ranks_) finish_slopes(stream(), ranks_->join_slopes(stream(), sums, count_), factors_, {});
}

/// Behind an addition the gradient of the sum is cut where it lies, before the other part has it.
void BatchNormOp::backward(const Execution& execution) {
  if (!dst_diff_) return;
  const std::size_t count = dst_.count(execution.images);
  timed(data_time_, [&] {
    if (!frozen_) {
      sum_slopes_of(execution);
    } else if (masks()) {
      activate_backward(stream(), numbers(), model::Relu{}, count, dst_data_, dst_diff_, dst_diff_,
                        false);
    }
    if (added_diff_)
      pass_on(stream(), numbers(), count, dst_diff_, added_diff_, after_.added->adds);
    if (!src_diff_) return;
    normalize_backward(stream(), numbers(), pass(execution.images, after_.relu && !masks()),
                       src_data_, dst_diff_, src_diff_, src_.adds);
  });
}

void BatchNormOp::backward_of_nothing(compute::Accumulate) {
  if (ranks_ && dst_.wants_diff) ranks_->join_slopes(stream(), {.channels = factors_.channels}, 0);
}

/// One for all: kernels of the device do so for all layers of the program together.
void BatchNormOp::publish_statistics() {
  if (!frozen_ && first_moved_ == 0) moved_->publish(stream());
}

LayerNormOp::LayerNormOp(const Planning& planning, int op, const model::Graph::Node& node,
                         const Source& src, const Activation& dst, std::size_t first_parameter)
    : UnaryOp(planning, op, src, dst, planning, node.name, "lanes of a warp share a position"),
      layer_(std::get<model::LayerNorm>(node.layer)),
      multiprocessors_(planning.multiprocessors),
      first_parameter_(first_parameter) {
  pass_.channels = src.layout.shape.channels;
  pass_.epsilon = layer_.epsilon;
  pass_.positions = pass(planning.largest()).positions;
  const std::size_t statistics = 2 * to_size(pass_.positions) * sizeof(float);
  statistics_block_ = planning.memory.add(statistics, planning.forward_time(op));
  if (!dst.wants_diff) return;
  const int backward = planning.backward_time(op);
  planning.memory.use(statistics_block_, backward);
  planning.memory.use(src.value, backward);
  if (node.frozen || node.parameters.empty()) return;
  std::size_t sums = 0;
  for (const int images : planning.sizes) sums = std::max(sums, plan_sums(images).count());
  sums_block_ = planning.memory.add(sums * sizeof(float), backward);
}

Formats LayerNormOp::formats() const {
  Formats formats;
  if (layer_.scale) add_vector(formats, pass_.channels);
  if (layer_.offset) add_vector(formats, pass_.channels);
  return formats;
}

void LayerNormOp::bind(const Bindings& bindings) {
  UnaryOp::bind(bindings);
  const std::size_t beta = first_parameter_ + (layer_.scale ? 1 : 0);
  if (layer_.scale) pass_.gamma = bindings.weights(first_parameter_);
  if (layer_.offset) pass_.beta = bindings.weights(beta);
  pass_.mean = bindings.at(statistics_block_);
  pass_.inverse = pass_.mean + pass_.positions;
  if (!dst_diff_) return;
  if (layer_.scale) gradients_.gamma = bindings.gradients(first_parameter_);
  if (layer_.offset) gradients_.beta = bindings.gradients(beta);
  if (gradients_.gamma || gradients_.beta) sums_ = bindings.at(sums_block_);
}

LayerNormPass LayerNormOp::pass(int images) const {
  LayerNormPass pass = pass_;
  pass.positions = images * src_.layout.shape.height * src_.layout.shape.width;
  return pass;
}

ChannelSums LayerNormOp::plan_sums(int images) const {
  return plan_channel_sums(numbers(), pass(images).positions, src_.layout.block, multiprocessors_);
}

void LayerNormOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    normalize_positions(stream(), numbers(), pass(execution.images), src_data_, dst_data_);
  });
}

void LayerNormOp::backward(const Execution& execution) {
  if (!dst_diff_) return;
  const LayerNormPass of_images = pass(execution.images);
  if (sums_) {
    timed(weights_time_, [&] {
      ChannelSums sums = plan_sums(execution.images);
      sums.values = sums_;
      sum_position_slopes(stream(), numbers(), sums, of_images, src_data_, dst_diff_);
      gradients_.add = execution.adds();
      finish_slopes(stream(), sums, {}, gradients_);
    });
  }
  if (!src_diff_) return;
  timed(data_time_, [&] {
    normalize_positions_backward(stream(), numbers(), of_images, src_data_, dst_diff_, src_diff_,
                                 src_.adds);
  });
}

}  // namespace cputrain::cuda
