#pragma once

#include "backends/cuda/ops/op.h"

namespace cputrain::cuda {

/// The images' bytes go to the device through pinned memory, where they become numbers.
class InputOp final : public DeviceOp {
 public:
  InputOp(const Planning&, const model::Graph::Node&, const Activation& dst);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;

 private:
  model::Input input_;
  Activation dst_;
  std::size_t staged_bytes_ = 0;
  PinnedBlock staged_;
  Event copied_;  ///< what it holds, to the device
  compute::MemoryPlan::Block bytes_;
  std::uint8_t* bytes_data_ = nullptr;
  float* dst_data_ = nullptr;
};

}  // namespace cputrain::cuda
