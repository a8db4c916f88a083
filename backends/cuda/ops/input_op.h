#pragma once

#include "backends/cuda/ops/op.h"

namespace cputrain::cuda {

/// The images' bytes, which lie on the device, become numbers.
class InputOp final : public DeviceOp {
 public:
  InputOp(const Planning&, const model::Graph::Node&, const Activation& dst);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;

 private:
  model::Input input_;
  Activation dst_;
  const PassFacts* facts_;
  void* dst_data_ = nullptr;
};

}  // namespace cputrain::cuda
