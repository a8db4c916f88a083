#pragma once

#include "backends/cuda/ops/op.h"
#include "compute/executor/activation_ops.h"

namespace cputrain::cuda {

/// Maximum or mean of windows, or the mean of the whole activation. Zero padding is the maximum of
/// windows of one number, which sees zeros outside.
class PoolOp final : public compute::UnaryOp<DeviceOp, void> {
 public:
  /// Error(usage) where a max pool's window is larger than kLargestMaxPool. `zeros`: the node
  /// before, which has no operator of its own. `relu`: a max pool is its ReLU, too.
  PoolOp(const Planning&, int op, const model::Graph::Node&, const model::ZeroPad* zeros, bool relu,
         const Source&, const Activation& dst);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  enum class Kind { max, average, global };

  Kind kind_ = Kind::global;
  bool relu_;
  WindowShape window_;  ///< but for the images
  compute::MemoryPlan::Block winners_{};
  std::uint8_t* winners_data_ = nullptr;
};

}  // namespace cputrain::cuda
