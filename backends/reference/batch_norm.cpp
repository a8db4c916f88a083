// Batch normalization, after Ioffe and Szegedy (arXiv 1502.03167), with Keras' moving statistics.

#include <cmath>
#include <vector>

#include "backends/reference/layers.h"
#include "core/casts.h"

namespace cputrain::reference {
namespace {

/// Calls f(position, channel) for every value of the images.
template <class F>
void for_values(int images, const Shape& shape, F f) {
  const std::size_t channels = to_size(shape.channels);
  const std::size_t pixels = to_size(images) * shape.size() / channels;
  for (std::size_t p = 0; p < pixels; ++p) {
    for (std::size_t c = 0; c < channels; ++c) f(p * channels + c, c);
  }
}

/// Mean and biased variance of every channel, over all ranks; sets a.mean and a.count.
template <class T>
std::vector<double> measure(const BatchNormArgs<T>& a) {
  const auto channels = to_size(a.shape.channels);
  std::vector<double> sums(channels + 1);
  for_values(a.images, a.shape, [&](std::size_t i, std::size_t c) { sums[c] += a.src[i]; });
  const std::size_t pixels = a.shape.size() / channels;
  sums[channels] = to_double(a.images) * to_double(pixels);
  a.sum_over_ranks(sums);
  a.count = sums[channels];
  for (std::size_t c = 0; c < channels; ++c) a.mean[c] = a.count > 0 ? sums[c] / a.count : 0;

  std::vector<double> variance(channels);
  for_values(a.images, a.shape, [&](std::size_t i, std::size_t c) {
    variance[c] += (a.src[i] - a.mean[c]) * (a.src[i] - a.mean[c]);
  });
  a.sum_over_ranks(variance);
  for (double& v : variance) v = a.count > 0 ? v / a.count : 0;
  return variance;
}

/// The variance that the moving one is moved towards is the unbiased estimate.
template <class T>
void move_statistics(const model::BatchNorm& l, const BatchNormArgs<T>& a,
                     const std::vector<double>& variance) {
  if (a.count == 0) return;
  const double step = 1 - to_double(l.momentum);
  const double unbiased = a.count > 1 ? a.count / (a.count - 1) : 1;
  for (std::size_t c = 0; c < variance.size(); ++c) {
    a.moving_mean[c] -= static_cast<T>((a.moving_mean[c] - a.mean[c]) * step);
    a.moving_variance[c] -= static_cast<T>((a.moving_variance[c] - variance[c] * unbiased) * step);
  }
}

}  // namespace

template <class T>
void forward(const model::BatchNorm& l, const BatchNormArgs<T>& a) {
  const auto channels = to_size(a.shape.channels);
  std::vector<double> variance(a.moving_variance, a.moving_variance + channels);
  if (a.learns) {
    variance = measure(a);
    move_statistics(l, a, variance);
  } else {
    for (std::size_t c = 0; c < channels; ++c) a.mean[c] = a.moving_mean[c];
  }
  for (std::size_t c = 0; c < channels; ++c) {
    a.inverse_deviation[c] = 1 / std::sqrt(variance[c] + to_double(l.epsilon));
  }
  for_values(a.images, a.shape, [&](std::size_t i, std::size_t c) {
    const double normal = (a.src[i] - a.mean[c]) * a.inverse_deviation[c];
    a.dst[i] = static_cast<T>(normal * a.gamma[c] + a.beta[c]);
  });
}

template <class T>
void backward(const model::BatchNorm&, const BatchNormArgs<T>& a) {
  const auto channels = to_size(a.shape.channels);
  // Sums of the gradient, and of the gradient times the normalised value.
  std::vector<double> sums(2 * channels);
  for_values(a.images, a.shape, [&](std::size_t i, std::size_t c) {
    sums[c] += a.diff_dst[i];
    sums[channels + c] += a.diff_dst[i] * (a.src[i] - a.mean[c]) * a.inverse_deviation[c];
  });
  if (a.diff_gamma) {  // this rank's part: the reduction adds up the others'
    for (std::size_t c = 0; c < channels; ++c) {
      a.diff_beta[c] += static_cast<T>(sums[c]);
      a.diff_gamma[c] += static_cast<T>(sums[channels + c]);
    }
  }
  if (a.learns) {
    a.sum_over_ranks(sums);
  } else {  // mean and variance do not depend on the images
    sums.assign(sums.size(), 0.0);
  }
  if (!a.diff_src) return;
  const double count = a.learns ? a.count : 1;
  for_values(a.images, a.shape, [&](std::size_t i, std::size_t c) {
    const double normal = (a.src[i] - a.mean[c]) * a.inverse_deviation[c];
    const double centred = a.diff_dst[i] - (sums[c] + normal * sums[channels + c]) / count;
    a.diff_src[i] += static_cast<T>(a.gamma[c] * a.inverse_deviation[c] * centred);
  });
}

#define CPUTRAIN_BATCH_NORM(T)                                             \
  template void forward(const model::BatchNorm&, const BatchNormArgs<T>&); \
  template void backward(const model::BatchNorm&, const BatchNormArgs<T>&);
CPUTRAIN_BATCH_NORM(float)
CPUTRAIN_BATCH_NORM(double)
#undef CPUTRAIN_BATCH_NORM

}  // namespace cputrain::reference
