// Layers without a window: dense, dropout, and the losses.

#include <algorithm>
#include <cassert>
#include <cmath>

#include "backends/reference/layers.h"
#include "compute/tally.h"
#include "core/casts.h"

namespace cputrain::reference {

template <class T>
void forward(const model::GlobalAveragePool&, const LayerArgs<T>& a) {
  const std::size_t pixels = a.src_shape.size() / a.src_shape.channels;
  const int channels = a.src_shape.channels;
  std::fill_n(a.dst, to_size(a.images) * channels, T{0});
  for (int n = 0; n < a.images; ++n) {
    for (std::size_t p = 0; p < pixels; ++p) {
      for (int c = 0; c < channels; ++c) {
        a.dst[n * channels + c] += a.src[(n * pixels + p) * channels + c] / static_cast<T>(pixels);
      }
    }
  }
}

template <class T>
void backward(const model::GlobalAveragePool&, const LayerArgs<T>& a) {
  if (!a.diff_src) return;
  const std::size_t pixels = a.src_shape.size() / a.src_shape.channels;
  const int channels = a.src_shape.channels;
  for (int n = 0; n < a.images; ++n) {
    for (std::size_t p = 0; p < pixels; ++p) {
      for (int c = 0; c < channels; ++c) {
        a.diff_src[(n * pixels + p) * channels + c] +=
            a.diff_dst[n * channels + c] / static_cast<T>(pixels);
      }
    }
  }
}

template <class T>
void forward(const model::Dense& l, const LayerArgs<T>& a) {
  const std::size_t in = a.src_shape.size(), out = to_size(l.units);
  for (int n = 0; n < a.images; ++n) {
    T* dst = a.dst + n * out;
    for (std::size_t o = 0; o < out; ++o) dst[o] = a.bias ? a.bias[o] : T{0};
    for (std::size_t i = 0; i < in; ++i) {
      const T value = a.src[n * in + i];
      for (std::size_t o = 0; o < out; ++o) dst[o] += value * a.weights[i * out + o];
    }
  }
}

template <class T>
void backward(const model::Dense& l, const LayerArgs<T>& a) {
  const std::size_t in = a.src_shape.size(), out = to_size(l.units);
  for (int n = 0; n < a.images; ++n) {
    const T* diff_dst = a.diff_dst + n * out;
    if (a.diff_bias) {
      for (std::size_t o = 0; o < out; ++o) a.diff_bias[o] += diff_dst[o];
    }
    for (std::size_t i = 0; a.diff_weights && i < in; ++i) {
      const T value = a.src[n * in + i];
      T* diff_weights = a.diff_weights + i * out;
      for (std::size_t o = 0; o < out; ++o) diff_weights[o] += value * diff_dst[o];
    }
    if (a.diff_src) add_weighted(in, out, out, a.weights, diff_dst, a.diff_src + n * in);
  }
}

template <class T>
void forward(const model::Flatten&, const LayerArgs<T>& a) {
  std::copy_n(a.src, a.images * a.src_shape.size(), a.dst);
}

template <class T>
void backward(const model::Flatten&, const LayerArgs<T>& a) {
  if (!a.diff_src) return;
  const std::size_t count = a.images * a.src_shape.size();
  for (std::size_t i = 0; i < count; ++i) a.diff_src[i] += a.diff_dst[i];
}

namespace {

/// f(the first number of a pixel's, mean, 1 / deviation) for each pixel of all images.
template <class T, class F>
void for_normal_pixels(const model::LayerNorm& l, const LayerArgs<T>& a, const F& f) {
  const std::size_t channels = to_size(a.src_shape.channels);
  const std::size_t count = to_size(a.images) * a.src_shape.size();
  for (std::size_t first = 0; first < count; first += channels) {
    double mean = 0, variance = 0;
    for (std::size_t c = 0; c < channels; ++c) mean += a.src[first + c] / to_double(channels);
    for (std::size_t c = 0; c < channels; ++c) {
      variance += (a.src[first + c] - mean) * (a.src[first + c] - mean) / to_double(channels);
    }
    f(first, mean, 1 / std::sqrt(variance + to_double(l.epsilon)));
  }
}

}  // namespace

/// A gamma stands where others have weights, a beta behind it.
template <class T>
void forward(const model::LayerNorm& l, const LayerArgs<T>& a) {
  const T *gamma = l.scale ? a.weights : nullptr, *beta = l.scale ? a.bias : a.weights;
  for_normal_pixels(l, a, [&](std::size_t first, double mean, double inverse) {
    for (int c = 0; c < a.src_shape.channels; ++c) {
      const double normal = (a.src[first + c] - mean) * inverse;
      a.dst[first + c] = static_cast<T>(normal * (gamma ? gamma[c] : 1) + (beta ? beta[c] : 0));
    }
  });
}

template <class T>
void backward(const model::LayerNorm& l, const LayerArgs<T>& a) {
  const T* gamma = l.scale ? a.weights : nullptr;
  T *diff_gamma = l.scale ? a.diff_weights : nullptr,
    *diff_beta = l.scale ? a.diff_bias : a.diff_weights;
  const int channels = a.src_shape.channels;
  for_normal_pixels(l, a, [&](std::size_t first, double mean, double inverse) {
    const auto normal = [&](int c) { return (a.src[first + c] - mean) * inverse; };
    const auto diff = [&](int c) { return a.diff_dst[first + c] * (gamma ? gamma[c] : 1.0); };
    double sum = 0, product = 0;
    for (int c = 0; c < channels; ++c) {
      if (diff_gamma) diff_gamma[c] += static_cast<T>(a.diff_dst[first + c] * normal(c));
      if (diff_beta) diff_beta[c] += a.diff_dst[first + c];
      sum += diff(c) / channels;
      product += diff(c) * normal(c) / channels;
    }
    for (int c = 0; a.diff_src && c < channels; ++c) {
      a.diff_src[first + c] += static_cast<T>(inverse * (diff(c) - sum - normal(c) * product));
    }
  });
}

template <class T>
void apply_dropout(const DropoutDraw& draw, std::size_t elements, const T* from, T* to, bool add) {
  const T scale = T{1} / (T{1} - static_cast<T>(draw.rate));
  for (std::size_t n = 0; n < draw.samples.size(); ++n) {
    const DropoutMask mask(draw.rate, draw.seed, draw.step, draw.layer, draw.samples[n]);
    for (std::size_t e = 0; e < elements; ++e) {
      const bool keep = mask.keeps(static_cast<std::uint32_t>(e / 4))[e % 4];
      const std::size_t i = n * elements + e;
      const T value = keep ? from[i] * scale : T{0};
      to[i] = add ? to[i] + value : value;
    }
  }
}

double Targets::weight(std::size_t image, int c) const {
  if (mixed.empty()) return labels[image] == c;
  const compute::MixedLabel& m = mixed[image];
  return (labels[image] == c ? to_double(m.own) : 0) + (m.other == c ? to_double(m.others) : 0);
}

double Targets::total(std::size_t image) const {
  if (mixed.empty()) return 1;
  return to_double(mixed[image].own) + to_double(mixed[image].others);
}

double Targets::smoothed(std::size_t image, int c, int classes) const {
  return weight(image, c) * (1 - smoothing) + total(image) * smoothing / classes;
}

template <class T>
compute::Tally cross_entropy(const model::SigmoidCrossEntropy&, int, const Targets& targets,
                             const T* z, T* probabilities) {
  compute::Tally tally;
  for (std::size_t n = 0; n < targets.labels.size(); ++n) {
    const double logit = z[n];
    probabilities[n] = static_cast<T>(1 / (1 + std::exp(-logit)));
    const double softplus = std::max(logit, 0.0) + std::log1p(std::exp(-std::abs(logit)));
    tally.loss += targets.total(n) * softplus - logit * targets.smoothed(n, 1, 2);
    compute::count_prediction(std::span<const T>(probabilities + n, 1), to_size(targets.labels[n]),
                              tally);
  }
  return tally;
}

template <class T>
compute::Tally cross_entropy(const model::SoftmaxCrossEntropy&, int logits, const Targets& targets,
                             const T* z, T* probabilities) {
  compute::Tally tally;
  for (std::size_t n = 0; n < targets.labels.size(); ++n) {
    assert(targets.labels[n] >= 0 && targets.labels[n] < logits);
    const T* row = z + n * logits;
    const T largest = *std::max_element(row, row + logits);
    double sum = 0;
    for (int k = 0; k < logits; ++k) sum += std::exp(to_double(row[k] - largest));
    double expected = 0;
    for (int k = 0; k < logits; ++k) {
      probabilities[n * logits + k] = static_cast<T>(std::exp(to_double(row[k] - largest)) / sum);
      const double target = targets.smoothed(n, k, logits);
      if (target != 0) expected += target * to_double(row[k]);
    }
    tally.loss += targets.total(n) * (std::log(sum) + to_double(largest)) - expected;
    const std::span<const T> prediction(probabilities + n * logits, to_size(logits));
    compute::count_prediction(prediction, to_size(targets.labels[n]), tally);
  }
  return tally;
}

template <class T>
void cross_entropy_gradient(int logits, const Targets& targets, const T* probabilities, T scale,
                            T* diff_z) {
  const int classes = std::max(logits, 2);
  for (std::size_t n = 0; n < targets.labels.size(); ++n) {
    for (int k = 0; k < logits; ++k) {
      // One logit is that of class 1 in a sigmoid.
      const T target = static_cast<T>(targets.smoothed(n, logits == 1 ? 1 : k, classes));
      const T total = static_cast<T>(targets.total(n));
      diff_z[n * logits + k] += scale * (total * probabilities[n * logits + k] - target);
    }
  }
}

#define CPUTRAIN_POINTWISE_LAYERS(T)                                                            \
  template void forward(const model::GlobalAveragePool&, const LayerArgs<T>&);                  \
  template void backward(const model::GlobalAveragePool&, const LayerArgs<T>&);                 \
  template void forward(const model::Dense&, const LayerArgs<T>&);                              \
  template void backward(const model::Dense&, const LayerArgs<T>&);                             \
  template void forward(const model::Flatten&, const LayerArgs<T>&);                            \
  template void backward(const model::Flatten&, const LayerArgs<T>&);                           \
  template void forward(const model::LayerNorm&, const LayerArgs<T>&);                          \
  template void backward(const model::LayerNorm&, const LayerArgs<T>&);                         \
  template void apply_dropout(const DropoutDraw&, std::size_t, const T*, T*, bool);             \
  template compute::Tally cross_entropy(const model::SigmoidCrossEntropy&, int, const Targets&, \
                                        const T*, T*);                                          \
  template compute::Tally cross_entropy(const model::SoftmaxCrossEntropy&, int, const Targets&, \
                                        const T*, T*);                                          \
  template void cross_entropy_gradient(int, const Targets&, const T*, T, T*);
CPUTRAIN_POINTWISE_LAYERS(float)
CPUTRAIN_POINTWISE_LAYERS(double)
#undef CPUTRAIN_POINTWISE_LAYERS

}  // namespace cputrain::reference
