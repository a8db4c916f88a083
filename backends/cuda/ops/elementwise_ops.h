#pragma once

#include "backends/cuda/ops/op.h"

/// Ops that change a map in place.
namespace cputrain::cuda {

class ReluOp final : public Op {
 public:
  ReluOp(const Planning&, int op, const model::Graph::Node&, const Map&);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  Map map_;
  float *value_ = nullptr, *diff_ = nullptr;
};

/// Draws again on the way back what it drew forward; of evaluation it changes nothing.
class DropoutOp final : public Op {
 public:
  DropoutOp(const Planning&, int op, const model::Graph::Node&, const Map&);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  void apply(const Execution&, float* map) const;

  Map map_;
  float rate_;
  std::uint32_t layer_;  ///< Graph::Node::origin
  float *value_ = nullptr, *diff_ = nullptr;
};

}  // namespace cputrain::cuda
