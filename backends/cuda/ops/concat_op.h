#pragma once

#include "backends/cuda/kernels/concat.h"
#include "backends/cuda/ops/op.h"
#include "compute/executor/activation_ops.h"

namespace cputrain::cuda {

/// Maps one behind the other by their channels.
class ConcatOp final : public compute::SumOp<DeviceOp, void> {
 public:
  ConcatOp(const Planning&, int op, std::string name, std::vector<Source>, const Activation& dst);

  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  ConcatPart part(std::size_t i, int images) const;

  std::vector<int> firsts_;  ///< channels of the whole with which the parts begin
};

}  // namespace cputrain::cuda
