#pragma once

#include <array>
#include <span>

#include "backends/cuda/kernels/losses.h"
#include "backends/cuda/ops/op.h"
#include "core/casts.h"

namespace cputrain::cuda {

/// Sigmoid or softmax with its cross-entropy, from the logits. Losses and counts of images are
/// added up on the device, in their order.
class LossOp final : public OnDevice<compute::LossOp> {
 public:
  LossOp(const Planning&, int op, const model::Graph::Node&, const Activation& logits);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

  compute::Pending<compute::Tally> take_tally() override;
  std::span<const float> probabilities(const Execution& last) const override;

 private:
  /// Sums that were asked for, on their way to the host.
  struct Taken {
    explicit Taken(const ComputeStream& compute) : arrived(compute) {}
    PinnedBlock sums{sizeof(LossSums)};
    StreamEvent arrived;
  };

  LossCall call(const Execution&) const;
  compute::Tally fetch(std::size_t number);
  std::size_t count(const Execution& execution) const {
    return to_size(execution.images * classes_);
  }

  Activation logits_;
  int classes_;  ///< columns; 1 for the sigmoid
  double smoothing_;
  const PassFacts* facts_;
  DeviceBlock probabilities_, slopes_, losses_, sums_;  ///< sums: since they were last asked for
  PinnedBlock host_probabilities_;
  std::array<Taken, 2> taken_;  ///< in turn
  std::size_t tallies_ = 0;     ///< that were asked for
  void *logits_data_ = nullptr, *diff_ = nullptr;
};

}  // namespace cputrain::cuda
