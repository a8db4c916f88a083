#pragma once

#include "backends/cpu/ops/op.h"
#include "compute/executor/activation_ops.h"

/// Operators that change an activation in place.
namespace cputrain::cpu {

class ReluOp final : public compute::InPlaceOp<Op> {
 public:
  ReluOp(const Planning&, int op, const model::Graph::Node&, const Activation&);

  void forward(const Execution&) override;
  void backward(const Execution&) override;
};

/// Forward passes of Phase::train draw which elements of each sample stay; backward reuses that.
class DropoutOp final : public compute::InPlaceOp<Op> {
 public:
  DropoutOp(const Planning&, int op, const model::Graph::Node&, const Activation&);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  void draw(const Execution&, std::size_t image);

  float rate_, scale_;
  std::uint32_t layer_;  ///< Graph::Node::origin
  compute::MemoryPlan::Block kept_block_{};
  std::uint8_t* kept_ = nullptr;  ///< 0 or 1, where the activation's numbers lie
};

}  // namespace cputrain::cpu
