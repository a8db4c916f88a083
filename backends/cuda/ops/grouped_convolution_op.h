#pragma once

#include <vector>

#include "backends/cuda/kernels/grouped_convolution.h"
#include "backends/cuda/ops/op.h"
#include "compute/executor/activation_ops.h"

namespace cputrain::cuda {

/// A convolution whose channels are dealt to groups, depthwise ones among them.
class GroupedConvolutionOp final : public compute::UnaryOp<DeviceOp, void> {
 public:
  /// `zeros`: of the node before, which has no operator.
  GroupedConvolutionOp(const Planning&, int op, const model::Graph::Node&,
                       const model::ZeroPad* zeros, const Source&, const Activation& dst,
                       std::size_t parameter);

  std::vector<std::unique_ptr<compute::ParameterFormat>> formats() const override;
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  GroupedShape of(const Execution&) const;

  GroupedShape shape_;  ///< but for the images
  bool bias_;
  std::size_t parameter_;    ///< index of the kernel, which the bias follows
  std::vector<int> slices_;  ///< by Execution::size
  compute::MemoryPlan::Block sums_{};

  WeightCopies* copies_;
  const void* operand_ = nullptr;  ///< the kernel in the maps' numbers
  float *bias_data_ = nullptr, *diff_weights_ = nullptr, *diff_bias_ = nullptr;
  float* sums_data_ = nullptr;
};

}  // namespace cputrain::cuda
