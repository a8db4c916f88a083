#pragma once

#include "backends/cuda/ops/op.h"
#include "compute/executor/activation_ops.h"

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

}  // namespace cputrain::cuda
