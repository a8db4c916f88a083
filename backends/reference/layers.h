#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "compute/program.h"
#include "core/random/random.h"
#include "model/layer.h"

/// What each layer computes, as plain loops over dense arrays: activations N x H x W x C, kernels
/// HWIO or (in, out). Backward functions add to what they are given: gradients start at zero.
namespace cputrain::reference {

/// One layer's place in the program; null pointers where something is absent or not wanted.
template <class T>
struct LayerArgs {
  int images;
  Shape src_shape, dst_shape;
  const T* src;
  T* dst;
  const T* weights;
  const T* bias;
  // backward
  const T* diff_dst;
  T* diff_src;  ///< null: not wanted (the first layer that learns)
  T* diff_weights;
  T* diff_bias;
};

template <class T>
void forward(const model::Convolution&, const LayerArgs<T>&);
template <class T>
void backward(const model::Convolution&, const LayerArgs<T>&);

template <class T>
void forward(const model::MaxPool&, const LayerArgs<T>&);
/// The gradient goes to the first largest value of a window, in row order.
template <class T>
void backward(const model::MaxPool&, const LayerArgs<T>&);

template <class T>
void forward(const model::AveragePool&, const LayerArgs<T>&);
template <class T>
void backward(const model::AveragePool&, const LayerArgs<T>&);

template <class T>
void forward(const model::GlobalAveragePool&, const LayerArgs<T>&);
template <class T>
void backward(const model::GlobalAveragePool&, const LayerArgs<T>&);

template <class T>
void forward(const model::Dense&, const LayerArgs<T>&);
template <class T>
void backward(const model::Dense&, const LayerArgs<T>&);

/// For each of `inputs`: diff_src[i] += the sum of weights[i * pitch + o] * diff_dst[o] over all
/// `outputs`, in their order. Four sums go side by side, to the same bits, since one alone waits
/// for each of its additions.
template <class T>
void add_weighted(std::size_t inputs, std::size_t outputs, std::size_t pitch, const T* weights,
                  const T* diff_dst, T* diff_src) {
  constexpr std::size_t kAtOnce = 4;
  for (; inputs >= kAtOnce; inputs -= kAtOnce, weights += kAtOnce * pitch, diff_src += kAtOnce) {
    T sums[kAtOnce] = {};
    for (std::size_t o = 0; o < outputs; ++o) {
      for (std::size_t i = 0; i < kAtOnce; ++i) sums[i] += weights[i * pitch + o] * diff_dst[o];
    }
    for (std::size_t i = 0; i < kAtOnce; ++i) diff_src[i] += sums[i];
  }
  for (std::size_t i = 0; i < inputs; ++i) {
    T sum = 0;
    for (std::size_t o = 0; o < outputs; ++o) sum += weights[i * pitch + o] * diff_dst[o];
    diff_src[i] += sum;
  }
}

// Layers that work number by number: what each makes of x, and the gradient of x where `diff` is
// that of what it makes.

template <class T>
T value_at(const model::Relu&, T x) {
  return std::max(x, T{0});
}
template <class T>
T diff_at(const model::Relu&, T x, T diff) {
  return x > 0 ? diff : T{0};
}

template <class T>
T value_at(const model::Relu6&, T x) {
  return std::clamp(x, T{0}, T{6});
}
template <class T>
T diff_at(const model::Relu6&, T x, T diff) {
  return x > 0 && x < 6 ? diff : T{0};
}

template <class T>
T value_at(const model::LeakyRelu& l, T x) {
  return x > 0 ? x : static_cast<T>(l.slope) * x;
}
template <class T>
T diff_at(const model::LeakyRelu& l, T x, T diff) {
  return x > 0 ? diff : static_cast<T>(l.slope) * diff;
}

template <class T>
T value_at(const model::Silu&, T x) {
  return x / (1 + std::exp(-x));
}
template <class T>
T diff_at(const model::Silu&, T x, T diff) {
  const T sigmoid = 1 / (1 + std::exp(-x));
  return diff * sigmoid * (1 + x * (1 - sigmoid));
}

template <class Layer, class T>
concept NumberByNumber = requires(const Layer& layer, T x) {
  value_at(layer, x);
};

template <class T, NumberByNumber<T> Layer>
void forward(const Layer& layer, const LayerArgs<T>& a) {
  const std::size_t count = a.images * a.src_shape.size();
  for (std::size_t i = 0; i < count; ++i) a.dst[i] = value_at(layer, a.src[i]);
}
template <class T, NumberByNumber<T> Layer>
void backward(const Layer& layer, const LayerArgs<T>& a) {
  if (!a.diff_src) return;
  const std::size_t count = a.images * a.src_shape.size();
  for (std::size_t i = 0; i < count; ++i) a.diff_src[i] += diff_at(layer, a.src[i], a.diff_dst[i]);
}

template <class T>
void forward(const model::Flatten&, const LayerArgs<T>&);
template <class T>
void backward(const model::Flatten&, const LayerArgs<T>&);

template <class T>
void forward(const model::ZeroPad&, const LayerArgs<T>&);
template <class T>
void backward(const model::ZeroPad&, const LayerArgs<T>&);

template <class T>
void forward(const model::LayerNorm&, const LayerArgs<T>&);
template <class T>
void backward(const model::LayerNorm&, const LayerArgs<T>&);

/// One batch normalization's place in the program.
template <class T>
struct BatchNormArgs {
  int images;
  Shape shape;
  const T* src;
  T* dst;
  const T *gamma, *beta;
  T *moving_mean, *moving_variance;
  bool learns;  ///< training with the images' own statistics; else the moving ones are used
  std::function<void(std::span<double>)> sum_over_ranks;  ///< the identity unless synchronised
  std::span<double> mean, inverse_deviation;              ///< a number a channel: kept for backward
  double& count;  ///< values a channel, over all ranks: kept, too
  // backward
  const T* diff_dst;
  T* diff_src;                ///< null: not wanted
  T *diff_gamma, *diff_beta;  ///< null where the layer is frozen
};

template <class T>
void forward(const model::BatchNorm&, const BatchNormArgs<T>&);
template <class T>
void backward(const model::BatchNorm&, const BatchNormArgs<T>&);

/// Which elements of which images dropout keeps.
struct DropoutDraw {
  float rate;
  std::uint64_t seed, step;
  std::uint32_t layer;
  std::span<const std::uint32_t> samples;
};
/// from -> to times mask / (1 - rate); the same for values and for gradients. `add` adds to `to`.
template <class T>
void apply_dropout(const DropoutDraw&, std::size_t elements, const T* from, T* to, bool add);

/// What the outputs of images should be, as weights of classes. `smoothing` moves so much of them
/// to all classes alike.
struct Targets {
  std::span<const std::int32_t> labels;
  std::span<const compute::MixedLabel> mixed;  ///< one an image, or none
  double smoothing = 0;

  /// Before smoothing: 1 for the label, where labels are alone.
  double weight(std::size_t image, int c) const;
  double total(std::size_t image) const;
  double smoothed(std::size_t image, int c, int classes) const;
};

/// Sums of loss and correct answers over the images; fills probabilities (images x logits).
template <class T>
compute::Tally cross_entropy(const model::SigmoidCrossEntropy&, int logits, const Targets&,
                             const T* z, T* probabilities);
template <class T>
compute::Tally cross_entropy(const model::SoftmaxCrossEntropy&, int logits, const Targets&,
                             const T* z, T* probabilities);
/// diff_z += scale * (total * probability - target), the gradient of both.
template <class T>
void cross_entropy_gradient(int logits, const Targets&, const T* probabilities, T scale, T* diff_z);

}  // namespace cputrain::reference
