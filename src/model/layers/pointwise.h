#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "core/shape.h"
#include "model/layers/facts.h"

/// Layers that keep the shape of what they read.
namespace cputrain::model {

/// Keras' batch normalization of each channel: training uses mean and (biased) variance of the
/// images at hand and moves the moving ones towards them: moving += (batch - moving) *
/// (1 - momentum), the variance times N / (N - 1) as in TensorFlow's fused kernel; evaluation uses
/// the moving ones.
struct BatchNorm {
  static constexpr std::string_view kWord = "batch_norm";
  float epsilon = 1e-3f;
  float momentum = 0.99f;

  LayerFacts facts() const;
  std::vector<ParameterSpec> parameters(const Shape& src) const;
  void members(JsonMembers&);
};

/// Each pixel, or a flat map, by mean and (biased) variance of its own channels: (x - mean) /
/// sqrt(variance + epsilon) * gamma + beta, in training and evaluation alike.
struct LayerNorm {
  static constexpr std::string_view kWord = "layer_norm";
  float epsilon = 1e-3f;
  bool scale = true;   ///< has a gamma
  bool offset = true;  ///< has a beta

  LayerFacts facts() const;
  std::vector<ParameterSpec> parameters(const Shape& src) const;
  void members(JsonMembers&);
};

struct Relu {
  static constexpr std::string_view kWord = "relu";
  LayerFacts facts() const;
};

/// min(max(x, 0), 6); at 6, too, no gradient passes.
struct Relu6 {
  static constexpr std::string_view kWord = "relu6";
  LayerFacts facts() const;
};

/// x above 0, else slope * x. The sign stays, and tells which of the two it was, if slope > 0.
struct LeakyRelu {
  static constexpr std::string_view kWord = "leaky_relu";
  float slope = 0.01f;  ///< PyTorch's; from 0 to 1

  LayerFacts facts() const;
  void members(JsonMembers&);
};

/// Their gradient follows from what they made, so backends compute them in place.
using Rectifier = std::variant<Relu, Relu6, LeakyRelu>;

/// x * sigmoid(x), also known as swish.
struct Silu {
  static constexpr std::string_view kWord = "silu";
  LayerFacts facts() const;
};

/// Inverted dropout: training keeps with probability 1 - rate and divides by 1 - rate.
struct Dropout {
  static constexpr std::string_view kWord = "dropout";
  float rate;

  LayerFacts facts() const;
  void members(JsonMembers&);
};

// Last nodes: activation and its cross-entropy in one, computed from the logits. In training the
// targets are smoothed: target * (1 - smoothing) + smoothing / classes.

/// One logit z; probability of class 1 is sigmoid(z).
struct SigmoidCrossEntropy {
  static constexpr std::string_view kWord = "sigmoid";
  float smoothing = 0;

  LayerFacts facts() const;
};

/// One logit a class.
struct SoftmaxCrossEntropy {
  static constexpr std::string_view kWord = "softmax";
  float smoothing = 0;

  LayerFacts facts() const;
};

}  // namespace cputrain::model
