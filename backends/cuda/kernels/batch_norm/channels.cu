#include "backends/cuda/kernels/batch_norm/batch_norm.h"
#include "backends/cuda/kernels/products/gemm_slices.h"
#include "backends/cuda/kernels/warp_sums.h"

/// What there is one of for each channel. All of it is in double: it is little.
namespace cputrain::cuda {
namespace {

/// A block has the channels of a sector. Lines of threads share their parts, and each has so many
/// on their way at a time.
constexpr int kMostLines = 128, kPartsAtOnce = 8;

/// A channel's two numbers over some parts, or all of them.
struct Merged {
  double first, second;

  CPUTRAIN_DEVICE Merged& operator+=(const Merged& other) {
    first += other.first;
    second += other.second;
    return *this;
  }
};

/// f(sum, positions, first, second) adds a part to a line's sum. The sum of all is the first
/// line's.
template <class F>
CPUTRAIN_DEVICE Merged sum_of_parts(const ChannelSums& sums, int channel, F f) {
  Merged own{};
  const int lines = BlockSize::of_thread().y;
  const double of_last = sums.positions_of(sums.parts - 1);
  for (int begin = ThreadNumber::of_thread().y; begin < sums.parts; begin += kPartsAtOnce * lines) {
    float first[kPartsAtOnce], second[kPartsAtOnce];
#pragma unroll
    for (int i = 0; i < kPartsAtOnce; ++i) {
      const int part = begin + i * lines;
      const bool inside = part < sums.parts;
      first[i] = inside ? sums.of(part)[channel] : 0;
      second[i] = inside ? sums.of(part)[sums.channels + channel] : 0;
    }
#pragma unroll
    for (int i = 0; i < kPartsAtOnce; ++i) {
      const int part = begin + i * lines;
      if (part >= sums.parts) break;
      f(own, part + 1 < sums.parts ? sums.of_part : of_last, first[i], second[i]);
    }
  }
  return sum_of_lines<kMostLines * kChannelBlock>(own, kChannelBlock);
}

/// Distances are taken from the first part's mean. That is one of the means that are merged, so in
/// double little of the squares is lost.
struct MomentsRule {
  CPUTRAIN_DEVICE static Merged merged(const ChannelSums& sums, int channel) {
    const double near = sums.of(0)[channel];
    const Merged made = sum_of_parts(
        sums, channel, [&](Merged& sum, double positions, double mean, double squares) {
          const double apart = mean - near, weighed = positions * apart;
          sum.first += weighed;
          sum.second += squares + weighed * apart;
        });
    const double apart = made.first / sums.positions, squares = made.second - made.first * apart;
    return {near + apart, squares < 0 ? 0 : squares};
  }
};

struct SlopesRule {
  CPUTRAIN_DEVICE static Merged merged(const ChannelSums& sums, int channel) {
    return sum_of_parts(sums, channel, [](Merged& sum, double, double first, double second) {
      sum += Merged{first, second};
    });
  }
};

CPUTRAIN_DEVICE int channel_of_thread() {
  return block_number() * BlockSize::of_thread().x + thread_number();
}

template <class Rule>
__global__ void __launch_bounds__(kMostLines* kChannelBlock)
    merge_parts_kernel(ChannelSums sums, double* __restrict__ merged) {
  const int channel = channel_of_thread();
  const Merged made = Rule::merged(sums, channel);
  if (threadIdx.y > 0) return;
  merged[channel] = made.first;
  merged[sums.channels + channel] = made.second;
}

/// Factors mean to inverse. Padding has no parameters: zeros.
CPUTRAIN_DEVICE void write_factors(const BatchNormLayer& layer, const ChannelFactors& factors,
                                   int channel, double mean, double variance) {
  const bool padding = channel >= layer.channels;
  const double inverse = padding ? 0 : 1 / sqrt(variance + layer.epsilon);
  factors.set(ChannelFactors::mean, channel, padding ? 0 : mean);
  factors.set(ChannelFactors::scale, channel, padding ? 0 : layer.gamma[channel] * inverse);
  factors.set(ChannelFactors::shift, channel, padding ? 0 : layer.beta[channel]);
  factors.set(ChannelFactors::inverse, channel, inverse);
}

/// What is moved goes on from what was moved before, the first time since it was published from
/// what is in the arena.
CPUTRAIN_DEVICE void move(const BatchNormLayer& layer, int channel, double mean, double variance,
                          MovedStatistic& moved) {
  const MovedStatistic old = moved;
  float* const to_mean = layer.moving_mean + channel;
  float* const to_variance = layer.moving_variance + channel;
  const float old_mean = old.to_mean ? old.mean : *to_mean;
  const float old_variance = old.to_mean ? old.variance : *to_variance;
  const double step = 1 - layer.momentum;
  moved = {old_mean + static_cast<float>((mean - old_mean) * step),
           old_variance + static_cast<float>((variance - old_variance) * step), to_mean,
           to_variance};
}

__global__ void __launch_bounds__(kMostLines* kChannelBlock)
    finish_statistics_kernel(ChannelSums sums, BatchNormLayer layer, ChannelFactors factors,
                             MovedStatistic* moved) {
  const int channel = channel_of_thread();
  const Merged moments = MomentsRule::merged(sums, channel);
  if (threadIdx.y > 0) return;
  const double count = sums.positions, variance = moments.second / count;
  write_factors(layer, factors, channel, moments.first, variance);
  if (channel >= layer.channels) return;
  const double unbiased = count > 1 ? count / (count - 1) : 1;
  move(layer, channel, moments.first, variance * unbiased, moved[channel]);
}

__global__ void __launch_bounds__(kPackThreads)
    use_moving_statistics_kernel(BatchNormLayer layer, ChannelFactors factors) {
  const int channel = channel_of_thread();
  if (channel >= factors.channels) return;
  const bool padding = channel >= layer.channels;
  write_factors(layer, factors, channel, padding ? 0 : layer.moving_mean[channel],
                padding ? 0 : layer.moving_variance[channel]);
  factors.set(ChannelFactors::slope, channel, 0);
  factors.set(ChannelFactors::offset, channel, 0);
}

__global__ void __launch_bounds__(kPackThreads)
    publish_statistics_kernel(int count, MovedStatistic* moved) {
  const int i = channel_of_thread();
  if (i >= count || !moved[i].to_mean) return;
  *moved[i].to_mean = moved[i].mean;
  *moved[i].to_variance = moved[i].variance;
  moved[i].to_mean = nullptr;
}

CPUTRAIN_DEVICE void put(float* sums, int channel, double value, bool add) {
  if (!sums) return;
  const float old = add ? sums[channel] : 0;
  sums[channel] = old + static_cast<float>(value);
}

/// The gradient of what was normalised is centred, and loses its part along the normalised values,
/// since mean and variance depend on every value.
__global__ void __launch_bounds__(kMostLines* kChannelBlock)
    finish_slopes_kernel(ChannelSums sums, ChannelFactors factors, BatchNormGradients gradients) {
  const int channel = channel_of_thread();
  const Merged slopes = SlopesRule::merged(sums, channel);
  if (threadIdx.y > 0) return;
  const double inverse = factors.values ? factors.of(ChannelFactors::inverse)[channel] : 1;
  const double product = slopes.second * inverse;
  put(gradients.beta, channel, slopes.first, gradients.add);
  put(gradients.gamma, channel, product, gradients.add);
  if (!factors.values) return;
  const double part = factors.of(ChannelFactors::scale)[channel] / sums.positions;
  factors.set(ChannelFactors::slope, channel, -part * product * inverse);
  factors.set(ChannelFactors::offset, channel, -part * slopes.first);
}

template <class... Parameters, class... Arguments>
void launch_channels(Stream stream, const char* name, void (*kernel)(Parameters...),
                     const ChannelSums& sums, Arguments... arguments) {
  launch(stream, name, kernel, grid_of(sums.channels / kChannelBlock),
         grid_of(kChannelBlock, lines_of_sum(sums.parts, kMostLines)), 0, sums, arguments...);
}

}  // namespace

void merge_moments(Stream stream, const ChannelSums& sums, double* merged) {
  launch_channels(stream, "merge_moments", merge_parts_kernel<MomentsRule>, sums, merged);
}

void merge_slopes(Stream stream, const ChannelSums& sums, double* merged) {
  launch_channels(stream, "merge_slopes", merge_parts_kernel<SlopesRule>, sums, merged);
}

void finish_statistics(Stream stream, const ChannelSums& sums, const BatchNormLayer& layer,
                       const ChannelFactors& factors, MovedStatistic* moved) {
  launch_channels(stream, "finish_statistics", finish_statistics_kernel, sums, layer, factors,
                  moved);
}

void use_moving_statistics(Stream stream, const BatchNormLayer& layer,
                           const ChannelFactors& factors) {
  launch(stream, "use_moving_statistics", use_moving_statistics_kernel,
         grid_of(pieces(factors.channels, kPackThreads)), dim3(kPackThreads), 0, layer, factors);
}

void publish_statistics(Stream stream, int count, MovedStatistic* moved) {
  launch_row(stream, "publish_statistics", publish_statistics_kernel, 1, count, moved);
}

void finish_slopes(Stream stream, const ChannelSums& sums, const ChannelFactors& factors,
                   const BatchNormGradients& gradients) {
  launch_channels(stream, "finish_slopes", finish_slopes_kernel, sums, factors, gradients);
}

}  // namespace cputrain::cuda
