#pragma once

#include <span>

#include "backends/cuda/kernels/losses.h"
#include "backends/cuda/ops/op.h"

namespace cputrain::cuda {

/// Sigmoid or softmax with its cross-entropy, from the logits. What it says of images is added up
/// on the device, in their order.
class LossOp final : public OnDevice<compute::LossOp> {
 public:
  LossOp(const Planning&, int op, const model::Graph::Node&, const Activation& logits);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

  compute::Tally take_tally() override;
  std::span<const float> probabilities(const Execution& last) const override;

 private:
  LossCall call(const Execution&) const;
  std::size_t count(const Execution& execution) const {
    return static_cast<std::size_t>(execution.images * classes_);
  }

  Activation logits_;
  int classes_;  ///< columns; 1 for the sigmoid
  double smoothing_;
  const PassFacts* facts_;
  Event taken_;  ///< the sums, to the host
  DeviceBlock probabilities_, slopes_, losses_, sums_;  ///< sums: since they were last asked for
  PinnedBlock host_probabilities_, host_sums_;
  float *logits_data_ = nullptr, *diff_ = nullptr;
};

}  // namespace cputrain::cuda
