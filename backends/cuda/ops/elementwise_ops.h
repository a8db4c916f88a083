#pragma once

#include "backends/cuda/ops/op.h"

/// Operators that change an activation in place.
namespace cputrain::cuda {

class ReluOp final : public DeviceOp {
 public:
  ReluOp(const Planning&, int op, const model::Graph::Node&, const Activation&);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  Activation activation_;
  float *value_ = nullptr, *diff_ = nullptr;
};

/// Draws again on the way back what it drew forward; of evaluation it changes nothing.
class DropoutOp final : public DeviceOp {
 public:
  DropoutOp(const Planning&, int op, const model::Graph::Node&, const Activation&);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  void apply(const Execution&, float* values) const;

  Activation activation_;
  float rate_;
  std::uint32_t layer_;  ///< Graph::Node::origin
  const PassFacts* facts_;
  float *value_ = nullptr, *diff_ = nullptr;
};

}  // namespace cputrain::cuda
