#pragma once

#include <utility>

#include "backends/cpu/ops/op.h"
#include "core/casts.h"

namespace cputrain::cpu {

/// Sigmoid or softmax with its cross-entropy, computed from the logits in double.
class LossOp final : public compute::LossOp {
 public:
  LossOp(const Planning&, int op, const model::Graph::Node&, const Activation& logits);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

  compute::Pending<compute::Tally> take_tally() override { return std::exchange(tally_, {}); }
  std::span<const float> probabilities(const Execution& last) const override {
    return std::span(probabilities_).first(to_size(last.images) * classes_);
  }

 private:
  double logit(std::size_t image, std::size_t column) const {
    return to_double(logits_data_[image * logits_.layout.size() + logits_.layout.position(column)]);
  }
  std::span<const float> row(std::size_t image) const {
    return std::span(probabilities_).subspan(image * classes_, classes_);
  }
  /// What the loss of an image is made of.
  struct Target {
    std::int32_t label, other;
    double own, others;
    double smoothing;

    double total() const { return own + others; }
    double of(std::size_t c) const {
      return (c == to_size(label) ? own : 0) + (c == to_size(other) ? others : 0);
    }
  };
  static Target target_of(const Execution&, std::size_t image, double smoothing);
  void sigmoid(std::size_t image, const Target&, compute::Tally&);
  void softmax(std::size_t image, const Target&, compute::Tally&);

  Activation logits_;
  std::size_t classes_;  ///< columns; 1 for the sigmoid
  bool sigmoid_;
  double smoothing_;      ///< label smoothing, in training only
  compute::Tally tally_;  ///< since it was last asked
  std::vector<float> probabilities_;
  std::vector<double> slopes_;  ///< d loss / d logit
  float *logits_data_ = nullptr, *diff_ = nullptr;
};

}  // namespace cputrain::cpu
