#pragma once

#include "backends/cpu/kernels/bf16.h"
#include "backends/cpu/ops/op.h"
#include "compute/executor/activation_ops.h"

/// Operators that change an activation of such numbers in place.
namespace cputrain::cpu {

template <class Number>
class ReluOp final : public compute::InPlaceOp<Op, Number> {
 public:
  ReluOp(const Planning&, int op, const model::Graph::Node&, const Activation&);

  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  using InPlace = compute::InPlaceOp<Op, Number>;
  using InPlace::activation_, InPlace::value_, InPlace::diff_, InPlace::time_;
};

/// Forward passes of Phase::train draw which elements of each sample stay; backward reuses that.
template <class Number>
class DropoutOp final : public compute::InPlaceOp<Op, Number> {
 public:
  DropoutOp(const Planning&, int op, const model::Graph::Node&, const Activation&);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  using InPlace = compute::InPlaceOp<Op, Number>;
  using InPlace::activation_, InPlace::value_, InPlace::diff_, InPlace::time_;

  void draw(const Execution&, std::size_t image);

  float rate_, scale_;
  std::uint32_t layer_;  ///< Graph::Node::origin
  compute::MemoryPlan::Block kept_block_{};
  std::uint8_t* kept_ = nullptr;  ///< 0 or 1, where the activation's numbers lie
};

}  // namespace cputrain::cpu
