#pragma once

#include "backends/cpu/kernels/bf16.h"
#include "backends/cpu/ops/op.h"

namespace cputrain::cpu {

/// Makes floats of 16-bit numbers, for readers that know no others, and rounds their gradient.
class WidenOp final : public Op {
 public:
  WidenOp(const Planning&, int op, std::string name, const Source& src, const Activation& dst);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  Source src_;
  Activation dst_;
  Bf16 *src_data_ = nullptr, *src_diff_ = nullptr;
  float *dst_data_ = nullptr, *dst_diff_ = nullptr;
};

}  // namespace cputrain::cpu
