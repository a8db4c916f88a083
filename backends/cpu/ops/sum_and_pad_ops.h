#pragma once

#include <vector>

#include "backends/cpu/ops/op.h"
#include "compute/executor/activation_ops.h"

/// Operators that only move or add up activations.
namespace cputrain::cpu {

/// dst = sum of the sources; of one source, a copy. A source whose gradient shares its memory with
/// dst's has it already.
class AddOp final : public Op {
 public:
  struct Part {
    Source src;
    bool shares_diff = false;
  };
  AddOp(const Planning&, int op, std::string name, std::vector<Part>, const Activation& dst);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  std::vector<Part> parts_;
  Activation dst_;
  std::vector<const float*> src_data_;
  std::vector<float*> src_diff_;  ///< null where there is nothing to write
  float *dst_data_ = nullptr, *dst_diff_ = nullptr;
};

/// Zeros around a map, for readers that cannot pad by themselves.
class PadOp final : public compute::UnaryOp<Op> {
 public:
  PadOp(const Planning&, int op, const model::Graph::Node&, const Source& src,
        const Activation& dst);

  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  template <class F>
  void for_rows(const Execution&, const F&) const;

  model::ZeroPad pad_;
};

}  // namespace cputrain::cpu
