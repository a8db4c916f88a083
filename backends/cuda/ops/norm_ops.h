#pragma once

#include <optional>
#include <span>
#include <utility>

#include "backends/cuda/kernels/layer_norm.h"
#include "backends/cuda/ops/convolution_op.h"
#include "backends/cuda/ops/op.h"
#include "compute/executor/activation_ops.h"
#include "core/casts.h"

namespace cputrain::comm {
class Communicator;
}

namespace cputrain::cuda {

/// Sums of a layer's channels over the images of all ranks. Ranks add up on the host, which waits
/// for the device meanwhile: passes that do so become no graphs.
class RankSums {
 public:
  RankSums(comm::Communicator& communicator, int channels);

  /// One part that has the moments of all ranks. `own` may have no positions.
  ChannelSums join_moments(Stream, const ChannelSums& own);
  /// The same of slopes, over so many positions of all ranks. `own` may have no values.
  ChannelSums join_slopes(Stream, const ChannelSums& own, double positions);

 private:
  /// What `merge` made of a rank's parts, on the host; zeros of no parts.
  void fetch(Stream, const ChannelSums& own, void (*merge)(Stream, const ChannelSums&, double*));
  /// As floats, which parts are.
  ChannelSums send(Stream, double positions);
  std::span<double> first() { return numbers().first(channels_); }
  std::span<double> second() { return numbers().subspan(channels_, channels_); }
  /// 2 x channels, and how many positions.
  std::span<double> numbers() { return {host_.as<double>(), 2 * channels_ + 1}; }

  comm::Communicator& communicator_;
  std::size_t channels_;
  DeviceBlock device_;
  PinnedBlock host_;
  Event done_;
};

/// Moving statistics of all batch norms of a program that training passes have moved on the side,
/// in one array, so that one kernel publishes them.
class MovedStatistics {
 public:
  /// Where a layer's channels begin. All layers are added before the first of them is asked for.
  int add(int channels) { return std::exchange(count_, count_ + channels); }

  MovedStatistic* at(int first, Stream stream) {
    if (!block_.data()) {
      block_ = DeviceBlock(to_size(count_) * sizeof(MovedStatistic), "moved statistics");
      clear_async(block_.data(), block_.size(), stream);
    }
    return block_.as<MovedStatistic>() + first;
  }
  void publish(Stream stream) {
    if (block_.data()) publish_statistics(stream, count_, at(0, stream));
  }

 private:
  int count_ = 0;
  DeviceBlock block_;
};

/// What follows a batch norm and is computed with it.
struct AfterBatchNorm {
  std::optional<Source> added;  ///< another activation
  bool relu = false;            ///< behind the addition
};

/// Batch normalization, an addition and the ReLU behind them in one pass over memory.
class BatchNormOp final : public compute::UnaryOp<DeviceOp, void> {
 public:
  /// `producer` makes moments of what it writes, which is `src`; null: nothing does. `moved`: of
  /// the program.
  BatchNormOp(const Planning&, int op, const model::Graph::Node&, const AfterBatchNorm&,
              const ConvolutionOp* producer, const Source& src, const Activation& dst,
              std::size_t first_parameter, std::shared_ptr<MovedStatistics> moved);

  Formats formats() const override;
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;
  void forward_of_nothing(const Execution&) override;
  void backward_of_nothing(compute::Accumulate) override;
  void publish_statistics() override;

  /// Whether backward passes sum slopes. `reader` then makes them, where it can.
  bool sums_slopes() const { return dst_.wants_diff && !frozen_; }
  void take_slopes_from(const ConvolutionOp& reader) { reader_ = &reader; }
  /// Where its own lie, once all operators are there.
  void plan_slopes(const Planning&, int op);
  /// What they are summed of, with that.
  NormSlopes slopes(const ChannelSums&, const Execution&) const;

 private:
  bool learns(const compute::Pass& pass) const {
    return pass.phase == compute::Phase::train && !frozen_;
  }
  int channels() const { return src_.layout.shape.channels; }
  int positions(int images) const;
  ChannelSums plan_sums(int images) const;
  compute::MemoryPlan::Block plan_space(const Planning&, const ConvolutionOp* maker,
                                        ConvolutionOp::Beside, int time) const;
  BatchNormPass pass(int images, bool relu) const;
  ChannelSums measure(const Execution&);
  void learn(const ChannelSums&);
  /// A ReLU behind an addition cuts the gradient where it lies.
  bool masks() const { return after_.added && after_.relu; }
  void sum_slopes_of(const Execution&);

  AfterBatchNorm after_;
  const ConvolutionOp *producer_, *reader_ = nullptr;
  bool frozen_;
  int multiprocessors_;
  std::size_t first_parameter_;
  std::shared_ptr<MovedStatistics> moved_;
  int first_moved_ = 0;
  std::optional<RankSums> ranks_;  ///< CompileOptions::synchronise
  double count_ = 0;               ///< with those: positions of all ranks in the last forward pass

  compute::MemoryPlan::Block factors_block_, forward_sums_block_, backward_sums_block_{};
  BatchNormLayer layer_;
  ChannelFactors factors_;
  BatchNormGradients gradients_;
  float *forward_sums_ = nullptr, *backward_sums_ = nullptr;
  void *added_data_ = nullptr, *added_diff_ = nullptr;
};

/// Layer normalization. Forward keeps mean and deviation of each position.
class LayerNormOp final : public compute::UnaryOp<DeviceOp, void> {
 public:
  LayerNormOp(const Planning&, int op, const model::Graph::Node&, const Source& src,
              const Activation& dst, std::size_t first_parameter);

  Formats formats() const override;
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  LayerNormPass pass(int images) const;
  ChannelSums plan_sums(int images) const;

  model::LayerNorm layer_;
  int multiprocessors_;
  std::size_t first_parameter_;
  compute::MemoryPlan::Block statistics_block_, sums_block_{};
  LayerNormPass pass_;
  BatchNormGradients gradients_;
  float* sums_ = nullptr;
};

}  // namespace cputrain::cuda
