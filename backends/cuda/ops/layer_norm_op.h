#pragma once

#include "backends/cuda/kernels/layer_norm.h"
#include "backends/cuda/ops/op.h"
#include "compute/executor/activation_ops.h"

namespace cputrain::cuda {

/// Layer normalization. Forward keeps mean and deviation of each position.
class LayerNormOp final : public compute::UnaryOp<DeviceOp, void> {
 public:
  LayerNormOp(const Planning&, int op, const model::Graph::Node&, const Source& src,
              const Activation& dst, std::size_t first_parameter);

  std::vector<std::unique_ptr<compute::ParameterFormat>> formats() const override;
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
