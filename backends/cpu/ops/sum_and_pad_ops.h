#pragma once

#include "backends/cpu/kernels/bf16.h"
#include "backends/cpu/ops/op.h"
#include "compute/executor/activation_ops.h"

/// Operators that only move or add up activations of such numbers.
namespace cputrain::cpu {

/// The sum of activations; of one, a copy.
template <class Number>
class AddOp final : public compute::SumOp<Op, Number> {
 public:
  AddOp(const Planning&, int op, std::string name, std::vector<Source>, const Activation& dst);

  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  using Sum = compute::SumOp<Op, Number>;
  using Sum::dst_, Sum::dst_data_, Sum::dst_diff_, Sum::parts_, Sum::src_data_, Sum::src_diff_,
      Sum::time_;
};

/// Zeros around a map, for readers that cannot pad by themselves.
template <class Number>
class PadOp final : public compute::UnaryOp<Op, Number> {
 public:
  PadOp(const Planning&, int op, const model::Graph::Node&, const Source& src,
        const Activation& dst);

  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  using Unary = compute::UnaryOp<Op, Number>;
  using Unary::dst_, Unary::src_, Unary::dst_data_, Unary::src_data_, Unary::dst_diff_,
      Unary::src_diff_, Unary::time_;

  template <class F>
  void for_rows(const Execution&, const F&) const;

  model::ZeroPad pad_;
};

}  // namespace cputrain::cpu
