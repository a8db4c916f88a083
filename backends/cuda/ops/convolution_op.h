#pragma once

#include <optional>
#include <vector>

#include "backends/cuda/kernels/grouped_convolution.h"
#include "backends/cuda/kernels/products/convolution.h"
#include "backends/cuda/ops/elementwise_ops.h"
#include "backends/cuda/ops/op.h"
#include "backends/cuda/ops/tile_trials.h"
#include "compute/executor/activation_ops.h"

namespace cputrain::cuda {

class BatchNormOp;

/// A convolution, or a dense layer: that is one of a window as large as what it reads, which is the
/// same as a window of 1 on one position that has all the numbers as channels. Its epilogue may add
/// another activation, of which the result is rounded once.
class ConvolutionOp final : public compute::UnaryOp<DeviceOp, void> {
 public:
  /// `zeros`: of the node before, which has no operator. `added`: not the source. `pairs`: the
  /// source is a map of them.
  ConvolutionOp(const Planning&, int op, const model::Graph::Node&, const model::ZeroPad* zeros,
                const Source&, const std::optional<Source>& added, const Activation& dst,
                std::size_t parameter, const std::optional<PixelPairs>& pairs);

  Formats formats() const override;
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;
  void time(bool on) override;
  TileTrials* choice() override { return trials_ ? &*trials_ : nullptr; }

  /// What training passes make beside their results, where no sums are cut into slices: moments of
  /// what this one writes, for a batch norm that reads it; or slopes of the batch norm that wrote
  /// what this one reads, as its first reader, which is the last to write that gradient.
  enum Beside { moments, slopes };
  /// `own`: this operator. `norm`: the batch norm's.
  void make_moments(const Planning&, int own, int norm);
  void make_slopes(const Planning&, int own, BatchNormOp&, int norm);
  /// Whether it does with so many images (Execution::size).
  bool makes(Beside which, std::size_t size) const { return makes(which, plans_[size]); }
  /// Those of the pass; no parts where it made none.
  ChannelSums sums(Beside, const Execution&) const;
  /// Training passes find its tiles. What sums it makes is known by then.
  void plan_trials(const Planning&);

 private:
  /// Sums that a product makes beside its result.
  struct MadeSums {
    ChannelSums (*of)(const WindowShape&, const ConvolutionPlan&);
    std::optional<compute::MemoryPlan::Block> block{};
    float* values = nullptr;
  };
  void make(MadeSums&, const Planning&, int begin, int end);
  bool makes(Beside, const ConvolutionPlan&) const;
  bool may_take(const WindowShape&, const ConvolutionPlan&, std::size_t product,
                const TileShape&) const;
  ConvolutionCall call(const Execution&, float* workspace) const;
  void begin_trial(const Execution&);

  WindowShape window_;  ///< but for the images
  std::optional<Source> added_;
  KernelAndBias kernel_;
  PaddedFormat format_;
  std::vector<ConvolutionPlan> plans_;  ///< by Execution::size
  compute::MemoryPlan::Block forward_workspace_{}, backward_workspace_{};
  MadeSums made_[2] = {{moments_of}, {slopes_of}};  ///< by Beside
  const BatchNormOp* norm_ = nullptr;               ///< whose slopes it makes
  std::optional<TileTrials> trials_;
  int usual_ = 0;                          ///< images of a training pass
  bool tries_ = false, is_trial_ = false;  ///< times are taken; so was that of the last pass
  bool times_layers_ = false;              ///< they are taken in any case
  ByProduct<double> spent_{};              ///< when the pass began

  float *forward_space_ = nullptr, *backward_space_ = nullptr;
  void *added_data_ = nullptr, *added_diff_ = nullptr;
};

/// A convolution whose channels are dealt to groups, depthwise ones among them.
class GroupedConvolutionOp final : public compute::UnaryOp<DeviceOp, void> {
 public:
  /// `zeros`: of the node before, which has no operator.
  GroupedConvolutionOp(const Planning&, int op, const model::Graph::Node&,
                       const model::ZeroPad* zeros, const Source&, const Activation& dst,
                       std::size_t parameter);

  Formats formats() const override;
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  GroupedShape of_images(int images) const;

  GroupedShape shape_;  ///< but for the images
  KernelAndBias kernel_;
  std::vector<int> slices_;  ///< by Execution::size
  compute::MemoryPlan::Block sums_{};
  float* sums_data_ = nullptr;
};

}  // namespace cputrain::cuda
