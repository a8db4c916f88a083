#pragma once

#include "backends/cpu/ops/step.h"

namespace cputrain::cpu {

/// Sigmoid or softmax with its cross-entropy, computed from the logits in double.
class LossStep final : public Step {
 public:
  LossStep(const Planning&, int step, const model::Graph::Node&, const Map& logits);

  std::vector<std::unique_ptr<ParameterFormat>> formats() const override { return {}; }
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;
  void append_times(std::vector<compute::LayerTime>& times) const override {
    times.push_back(time_);
  }

  int outputs() const { return static_cast<int>(classes_); }
  /// Of the last forward pass, images x classes (one column: of class 1).
  std::span<const float> probabilities() const {
    return std::span(probabilities_).first(images_ * classes_);
  }
  void forget() { images_ = 0; }

 private:
  double logit(std::size_t image, std::size_t column) const {
    return static_cast<double>(
        logits_data_[image * logits_.layout.size() + logits_.layout.position(column)]);
  }
  std::span<const float> row(std::size_t image) const {
    return std::span(probabilities_).subspan(image * classes_, classes_);
  }
  void sigmoid(std::size_t image, std::int32_t label, double smoothing, compute::Tally&);
  void softmax(std::size_t image, std::int32_t label, double smoothing, compute::Tally&);

  Map logits_;
  std::size_t classes_;  ///< columns; 1 for the sigmoid
  bool sigmoid_;
  double smoothing_;  ///< of the targets, in training
  std::size_t images_ = 0;
  std::vector<float> probabilities_;
  std::vector<double> slopes_;  ///< d loss / d logit
  float *logits_data_ = nullptr, *diff_ = nullptr;
  compute::LayerTime time_;
};

}  // namespace cputrain::cpu
