#pragma once

#include "backends/cpu/ops/op.h"

/// Operators that change an activation in place.
namespace cputrain::cpu {

class ReluOp final : public Op {
 public:
  ReluOp(const Planning&, int op, const model::Graph::Node&, const Activation&);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  Activation activation_;
  float *value_ = nullptr, *diff_ = nullptr;
};

/// Forward passes of Phase::train draw which elements of each sample stay; backward reuses that.
class DropoutOp final : public Op {
 public:
  DropoutOp(const Planning&, int op, const model::Graph::Node&, const Activation&);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  void draw(const Execution&, std::size_t image);

  Activation activation_;
  float rate_, scale_;
  std::uint32_t layer_;  ///< Graph::Node::origin
  compute::MemoryPlan::Block kept_block_{};
  std::uint8_t* kept_ = nullptr;  ///< 0 or 1, where the activation's numbers lie
  float *value_ = nullptr, *diff_ = nullptr;
};

}  // namespace cputrain::cpu
