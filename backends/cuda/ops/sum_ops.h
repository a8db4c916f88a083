#pragma once

#include "backends/cuda/ops/op.h"
#include "compute/executor/activation_ops.h"

/// Operators that make one activation of several.
namespace cputrain::cuda {

/// The sum of activations; of one, a copy.
class AddOp final : public compute::SumOp<DeviceOp, void> {
 public:
  AddOp(const Planning&, int op, std::string name, std::vector<Source>, const Activation& dst);

  void forward(const Execution&) override;
  void backward(const Execution&) override;
};

/// The gradient of a sum becomes that of a part, or is added to what is there.
void pass_on(Stream, Numbers, std::size_t count, const void* diff, void* of_part, bool add);

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
