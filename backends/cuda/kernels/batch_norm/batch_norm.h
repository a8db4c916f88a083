#pragma once

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/numbers.h"
#include "backends/cuda/kernels/shapes.h"

/// Batch normalization (Ioffe and Szegedy, arXiv 1502.03167) of maps (shapes.h) that are stored as
/// `Numbers` say. Each direction has three steps: sums over the map by fixed parts, then what each
/// channel needs from those, then one pass over the map. Parts are merged in a fixed order, so the
/// same bits come out every time.
namespace cputrain::cuda {

/// Two numbers of each channel over the positions of all images, formed by parts. Moments: the
/// mean, and the sum of squared distances from it. Slopes: the sum of the gradient, and that of the
/// gradient times the distance of what was normalised from its mean.
struct ChannelSums {
  int channels = kChannelBlock;  ///< as they are stored
  int parts = 0;
  double positions = 0;     ///< in all parts
  double of_part = 0;       ///< positions of each but the last, which has what is left
  float* values = nullptr;  ///< on the device: parts x 2 x channels

  CPUTRAIN_HOST_DEVICE constexpr std::size_t count() const {
    return offset_of_row(2 * parts, channels);
  }
  CPUTRAIN_HOST_DEVICE constexpr double positions_of(int part) const {
    const double left = positions - part * of_part;
    return left < of_part ? left : of_part;
  }
  /// Where the first numbers of a part lie; the second ones lie `channels` behind them.
  CPUTRAIN_HOST_DEVICE constexpr float* of(int part) const {
    return values + offset_of_row(2 * part, channels);
  }
};

/// As many parts as keep so many multiprocessors busy; without `values`. At least one position.
ChannelSums plan_channel_sums(Numbers, int positions, int channels, int multiprocessors);

/// What the layer has for each channel, on the device.
struct BatchNormLayer {
  int channels = 0;  ///< without padding
  double epsilon = 0, momentum = 0;
  const float *gamma = nullptr, *beta = nullptr;
  float *moving_mean = nullptr, *moving_variance = nullptr;
};

/// What passes over maps read for each channel as it is stored: padding has zeros. On the device.
struct ChannelFactors {
  enum Row { mean, scale, shift, inverse, slope, offset, kRows };

  float* values = nullptr;  ///< kRows x channels
  int channels = kChannelBlock;

  CPUTRAIN_HOST_DEVICE constexpr float* of(Row row) const { return values + row * channels; }
  /// Rounds.
  CPUTRAIN_HOST_DEVICE constexpr void set(Row row, int channel, double value) const {
    of(row)[channel] = static_cast<float>(value);
  }
};

/// A channel's moving statistics that a training pass has moved and that are not published yet.
struct MovedStatistic {
  float mean, variance;
  float *to_mean, *to_variance;  ///< where they will lie; null: nothing was moved
};

/// What a pass over maps has besides its arrays.
struct BatchNormPass {
  int positions = 0;  ///< in all images
  ChannelFactors factors;
  bool relu = false;
};

/// What slopes of a batch norm are sums of besides its diff_dst.
struct NormSlopes {
  ChannelSums sums;
  BatchNormPass pass;
  const void *src = nullptr, *output = nullptr;
};

/// Moments of the map's channels.
void measure_channels(Stream, Numbers, const ChannelSums&, const void* map);
/// Slopes. The gradient ends where a ReLU cut what was normalised: without `output` that is
/// computed anew; else `output` is the ReLU's, and diff_dst becomes zero there in place.
void sum_slopes(Stream, Numbers, const NormSlopes&, void* diff_dst);

/// `merged`, 2 x channels on the device, becomes what all parts have together.
void merge_moments(Stream, const ChannelSums&, double* merged);
void merge_slopes(Stream, const ChannelSums&, double* merged);

/// Factors (mean to inverse) of the batch's own statistics, which move the moving ones on the side:
/// by the unbiased variance, as in Keras. `moved`: of each channel without padding.
void finish_statistics(Stream, const ChannelSums&, const BatchNormLayer&, const ChannelFactors&,
                       MovedStatistic* moved);
/// Factors, all of them, of the moving statistics.
void use_moving_statistics(Stream, const BatchNormLayer&, const ChannelFactors&);
/// Writes what was moved to where it belongs.
void publish_statistics(Stream, int count, MovedStatistic* moved);

/// Where gradients of gamma and beta go, if anywhere.
struct BatchNormGradients {
  float *gamma = nullptr, *beta = nullptr;
  bool add = false;
};
/// Gradients of the parameters, and the factors `slope` and `offset`. Without factors gradients
/// have been multiplied by what was normalized, and no more is asked for.
void finish_slopes(Stream, const ChannelSums&, const ChannelFactors&, const BatchNormGradients&);

/// dst = normalised src, plus `other` where that is not null, then ReLU if the pass has it.
void normalize(Stream, Numbers, const BatchNormPass&, const void* src, const void* other,
               void* dst);
/// The gradient of src. With `relu` it ends where a ReLU cut what was normalised. `add`: it is
/// added to what is there. diff_src may be diff_dst.
void normalize_backward(Stream, Numbers, const BatchNormPass&, const void* src,
                        const void* diff_dst, void* diff_src, bool add);

}  // namespace cputrain::cuda
