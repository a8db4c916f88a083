#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/names.h"
#include "core/overloaded.h"
#include "core/shape.h"

/// A layer is data: a description without memory, device or state. Backends turn a graph of them
/// into a program. Adding a type to the variant fails to compile until every backend handles it.
namespace cputrain::model {

/// The image: uint8 RGB, as number `pixel * scale + offset` (normalization.h).
struct Input {
  PerColour scale = 1.0f / 255.0f;
  PerColour offset = 0.0f;
  bool operator==(const Input&) const = default;
};

/// Keras' words: `valid` pads nothing, `same` pads to ceil(n / stride) outputs, more at the end.
/// `half` pads kernel / 2, rounded down, on every side, as networks of PyTorch do.
enum class Padding { valid, same, half };
constexpr auto names(Padding) {
  return std::to_array<Name<Padding>>(
      {{Padding::valid, "valid"}, {Padding::same, "same"}, {Padding::half, "half"}});
}

/// The law of a kernel's first values. fan_in is kernel^2 * in / groups, fan_out kernel^2 *
/// filters; a dense layer's are its inputs and its units. Biases begin as zeros, but for one law.
enum class Initializer {
  glorot_uniform,   ///< within sqrt(6 / (fan_in + fan_out)): Keras'
  he_normal,        ///< of deviation sqrt(2 / fan_in)
  he_normal_out,    ///< of deviation sqrt(2 / fan_out)
  he_normal_group,  ///< of deviation sqrt(2 * groups / fan_out)
  uniform_in,       ///< within 1 / sqrt(fan_in), the bias as well: PyTorch's
  uniform_in_only,  ///< the same with a bias of zeros
  uniform_out,      ///< within 1 / sqrt(fan_out)
  normal_hundredth  ///< of deviation 0.01
};
constexpr auto names(Initializer) {
  using enum Initializer;
  return std::to_array<Name<Initializer>>({{glorot_uniform, "glorot_uniform"},
                                           {he_normal, "he_normal"},
                                           {he_normal_out, "he_normal_out"},
                                           {he_normal_group, "he_normal_group"},
                                           {uniform_in, "uniform_in"},
                                           {uniform_in_only, "uniform_in_only"},
                                           {uniform_out, "uniform_out"},
                                           {normal_hundredth, "normal_hundredth"}});
}

/// 2-D convolution, square kernel, weights HWIO (kernel, kernel, in / groups, out). Channels and
/// filters are cut into `groups` runs, and each run of filters reads its own run of channels: as
/// many groups as channels make it depthwise. The loss grows by `l2` times the sum of the squared
/// weights (Keras' kernel regulariser).
struct Convolution {
  int filters;
  int kernel;
  int stride = 1;
  Padding padding = Padding::valid;
  bool bias = true;
  float l2 = 0;
  int groups = 1;
  Initializer init = Initializer::glorot_uniform;
};
/// Rows and columns of zeros around the image.
struct ZeroPad {
  int top, bottom, left, right;
};
struct MaxPool {
  int size = 2;
  int stride = 2;
  Padding padding = Padding::valid;
};
/// Means over windows, in which padding does not count (as in Keras).
struct AveragePool {
  int size = 2;
  int stride = 2;
  Padding padding = Padding::valid;
};
struct GlobalAveragePool {};
/// weights (in, out); the input is read in the order height, width, channel. `l2` as above.
struct Dense {
  int units;
  bool bias = true;
  float l2 = 0;
  /// The ranks of a node compute it together: each has some rows of the kernel, that is some of the
  /// inputs, and works on these for the images of all (rewrite.h). No part of the model's JSON.
  bool sharded = false;
  Initializer init = Initializer::glorot_uniform;
};
/// Keras' batch normalization of each channel: training uses mean and (biased) variance of the
/// images at hand and moves the moving ones towards them: moving += (batch - moving) *
/// (1 - momentum), the variance times N / (N - 1) as in TensorFlow's fused kernel; evaluation uses
/// the moving ones.
struct BatchNorm {
  float epsilon = 1e-3f;
  float momentum = 0.99f;
};
/// The sum of two or more inputs of one shape.
struct Add {};
/// The channels of two or more maps of one height and width, one map behind the other.
struct Concat {};
struct Relu {};
/// min(max(x, 0), 6); at 6, too, no gradient passes.
struct Relu6 {};
/// x * sigmoid(x), also known as swish.
struct Silu {};
/// Inverted dropout: training keeps with probability 1 - rate and divides by 1 - rate.
struct Dropout {
  float rate;
};
struct Flatten {};

/// Last nodes: activation and its cross-entropy in one, computed from the logits. In training the
/// targets are smoothed: target * (1 - smoothing) + smoothing / classes.
/// One logit z; probability of class 1 is sigmoid(z).
struct SigmoidCrossEntropy {
  float smoothing = 0;
};
/// One logit a class.
struct SoftmaxCrossEntropy {
  float smoothing = 0;
};

using Layer = std::variant<Input, Convolution, ZeroPad, MaxPool, AveragePool, GlobalAveragePool,
                           Dense, BatchNorm, Add, Concat, Relu, Relu6, Silu, Dropout, Flatten,
                           SigmoidCrossEntropy, SoftmaxCrossEntropy>;

/// One array of numbers that belongs to a layer, in Keras' layout.
struct ParameterSpec {
  std::string name;  ///< "kernel", "bias", "gamma", ...; the graph puts the layer's before it
  std::vector<int> extents;  ///< HWIO (in: of a group), (in, out) or (out)
  bool decays = false;       ///< weight decay applies: kernels, not biases
  bool learnt = true;        ///< has a gradient; moving statistics have none
  bool averaged = false;     ///< each rank moves its own: what counts is the mean over ranks
  float l2 = 0;              ///< the loss grows by l2 * sum of squares
  double rate = 1;           ///< what the learning rate is multiplied by
  float fill = 0;            ///< what a vector's values are at first; kernels are drawn
  bool sharded = false;      ///< each rank of a node makes the gradient of some of its rows

  std::size_t size() const;
};

/// The word used in summaries, JSON and weight files: "convolution", "dense", ...
std::string_view type_name(const Layer&);

/// Extents of the output for the given inputs; throws Error(usage) where their number or shapes do
/// not fit or no output would be left, naming the sizes.
Shape output_shape(const Layer&, std::span<const Shape> src);
inline Shape output_shape(const Layer& layer, const Shape& src) {
  return output_shape(layer, std::span(&src, 1));
}

std::vector<ParameterSpec> parameters(const Layer&, const Shape& src);

/// Multiply-accumulates of one image in the forward pass; 0 for layers that do none.
double macs(const Layer&, const Shape& src);

/// Layers that read two or more others.
inline bool joins(const Layer& layer) {
  return std::holds_alternative<Add>(layer) || std::holds_alternative<Concat>(layer);
}

/// Rows or columns of zeros before the first and after the last: what `padding` means for n values.
struct PadAmount {
  int before;
  int after;
};
PadAmount pad_amount(Padding, int n, int kernel, int stride);

}  // namespace cputrain::model
