#pragma once

#include "backends/cpu/ops/op.h"
#include "compute/executor/activation_ops.h"

/// Operators that only move or add up activations.
namespace cputrain::cpu {

/// The sum of activations; of one, a copy.
class AddOp final : public compute::SumOp<Op> {
 public:
  AddOp(const Planning&, int op, std::string name, std::vector<compute::SumPart>,
        const Activation& dst);

  void forward(const Execution&) override;
  void backward(const Execution&) override;
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
