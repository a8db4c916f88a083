#pragma once

#include <span>

#include "backends/cuda/kernels/losses.h"
#include "backends/cuda/ops/op.h"

namespace cputrain::cuda {

/// Sigmoid or softmax with its cross-entropy, from the logits. What it says of each image goes to
/// the host, where it is added up in the order of images.
class LossOp final : public OnDevice<compute::LossOp> {
 public:
  LossOp(const Planning&, int op, const model::Graph::Node&, const Activation& logits);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

  compute::Tally tally() const override;
  std::span<const float> probabilities() const override;
  void forget() override { images_ = 0; }

 private:
  LossCall call(const Execution&) const;
  std::size_t count() const { return static_cast<std::size_t>(images_ * classes_); }

  Activation logits_;
  int classes_;  ///< columns; 1 for the sigmoid
  double smoothing_;
  int images_ = 0;
  bool sent_ = false;  ///< probabilities of the last forward pass, to the host
  DeviceBlock probabilities_, slopes_, losses_;
  PinnedBlock host_probabilities_, host_losses_;
  float *logits_data_ = nullptr, *diff_ = nullptr;
};

}  // namespace cputrain::cuda
