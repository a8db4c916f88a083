#include "backends/cuda/device/language.h"
#include "backends/cuda/kernels/batch_norm/batch_norm.h"
#include "backends/cuda/kernels/indices.h"

/// What there is one of for each channel. All of it is in double: it is little.
namespace cputrain::cuda {
namespace {

/// A block has so many channels; lines of threads share the parts of each.
inline constexpr int kAcross = 32, kLines = 8, kThreads = 256;

struct OfLines {
  double of[kLines][kAcross];
};

/// The sum over the lines, in halves, for all of them.
CPUTRAIN_DEVICE double sum_of_lines(double value) {
  auto& lines = shared<OfLines>();
  const auto [x, y] = ThreadNumber::of_thread();
  __syncthreads();  // what the last sum left there has been read
  lines.of[y][x] = value;
  for (int half = kLines / 2; half > 0; half /= 2) {
    __syncthreads();
    if (y < half) lines.of[y][x] += lines.of[y + half][x];
  }
  __syncthreads();
  return lines.of[0][x];
}

/// f(part's number) summed over all parts. Channels behind the last have nothing.
template <class F>
CPUTRAIN_DEVICE double sum_of_parts(const ChannelSums& sums, int channel, F f) {
  double sum = 0;
  const int parts = channel < sums.channels ? sums.parts : 0;
  for (int part = ThreadNumber::of_thread().y; part < parts; part += kLines) sum += f(part);
  return sum_of_lines(sum);
}

/// A channel's two numbers over all parts.
struct Merged {
  double first, second;
};

struct MomentsRule {
  /// Parts are alike but for the last: one division does for the others.
  CPUTRAIN_DEVICE static Merged merged(const ChannelSums& sums, int channel) {
    const double weight = sums.of_part / sums.positions;
    const double mean = sum_of_parts(sums, channel, [&](int part) {
      const double count = sums.positions_of(part);
      return sums.of(part)[channel] * (count == sums.of_part ? weight : count / sums.positions);
    });
    const double squares = sum_of_parts(sums, channel, [&](int part) {
      const double apart = sums.of(part)[channel] - mean;
      return sums.of(part)[sums.channels + channel] + apart * apart * sums.positions_of(part);
    });
    return {mean, squares};
  }
};

struct SlopesRule {
  CPUTRAIN_DEVICE static Merged merged(const ChannelSums& sums, int channel) {
    return {sum_of_parts(sums, channel, [&](int part) { return sums.of(part)[channel]; }),
            sum_of_parts(sums, channel,
                         [&](int part) { return sums.of(part)[sums.channels + channel]; })};
  }
};

CPUTRAIN_DEVICE int channel_of_thread() {
  return block_number() * BlockSize::of_thread().x + thread_number();
}

template <class Rule>
__global__ void __launch_bounds__(kAcross* kLines)
    merge_parts_kernel(ChannelSums sums, double* __restrict__ merged) {
  const int channel = channel_of_thread();
  const Merged made = Rule::merged(sums, channel);
  if (threadIdx.y > 0 || channel >= sums.channels) return;
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

__global__ void __launch_bounds__(kAcross* kLines)
    finish_statistics_kernel(ChannelSums sums, BatchNormLayer layer, ChannelFactors factors,
                             MovedStatistic* moved) {
  const int channel = channel_of_thread();
  const Merged moments = MomentsRule::merged(sums, channel);
  if (threadIdx.y > 0 || channel >= sums.channels) return;
  const double count = sums.positions, variance = moments.second / count;
  write_factors(layer, factors, channel, moments.first, variance);
  if (channel >= layer.channels) return;
  const double unbiased = count > 1 ? count / (count - 1) : 1;
  move(layer, channel, moments.first, variance * unbiased, moved[channel]);
}

__global__ void __launch_bounds__(kThreads)
    use_moving_statistics_kernel(BatchNormLayer layer, ChannelFactors factors) {
  const int channel = channel_of_thread();
  if (channel >= factors.channels) return;
  const bool padding = channel >= layer.channels;
  write_factors(layer, factors, channel, padding ? 0 : layer.moving_mean[channel],
                padding ? 0 : layer.moving_variance[channel]);
  factors.set(ChannelFactors::slope, channel, 0);
  factors.set(ChannelFactors::offset, channel, 0);
}

__global__ void __launch_bounds__(kThreads)
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
__global__ void __launch_bounds__(kAcross* kLines)
    finish_slopes_kernel(ChannelSums sums, ChannelFactors factors, BatchNormGradients gradients) {
  const int channel = channel_of_thread();
  const Merged slopes = SlopesRule::merged(sums, channel);
  if (threadIdx.y > 0 || channel >= sums.channels) return;
  const double inverse = factors.values ? factors.of(ChannelFactors::inverse)[channel] : 1;
  const double product = slopes.second * inverse;
  put(gradients.beta, channel, slopes.first, gradients.add);
  put(gradients.gamma, channel, product, gradients.add);
  if (!factors.values) return;
  const double part = factors.of(ChannelFactors::scale)[channel] / sums.positions;
  factors.set(ChannelFactors::slope, channel, -part * product * inverse);
  factors.set(ChannelFactors::offset, channel, -part * slopes.first);
}

}  // namespace

void merge_moments(Stream stream, const ChannelSums& sums, double* merged) {
  launch(stream, "merge_moments", merge_parts_kernel<MomentsRule>,
         grid_of(pieces(sums.channels, kAcross)), dim3(kAcross, kLines), 0, sums, merged);
}

void merge_slopes(Stream stream, const ChannelSums& sums, double* merged) {
  launch(stream, "merge_slopes", merge_parts_kernel<SlopesRule>,
         grid_of(pieces(sums.channels, kAcross)), dim3(kAcross, kLines), 0, sums, merged);
}

void finish_statistics(Stream stream, const ChannelSums& sums, const BatchNormLayer& layer,
                       const ChannelFactors& factors, MovedStatistic* moved) {
  launch(stream, "finish_statistics", finish_statistics_kernel,
         grid_of(pieces(sums.channels, kAcross)), dim3(kAcross, kLines), 0, sums, layer, factors,
         moved);
}

void use_moving_statistics(Stream stream, const BatchNormLayer& layer,
                           const ChannelFactors& factors) {
  launch(stream, "use_moving_statistics", use_moving_statistics_kernel,
         grid_of(pieces(factors.channels, kThreads)), dim3(kThreads), 0, layer, factors);
}

void publish_statistics(Stream stream, int count, MovedStatistic* moved) {
  launch(stream, "publish_statistics", publish_statistics_kernel, grid_of(pieces(count, kThreads)),
         dim3(kThreads), 0, count, moved);
}

void finish_slopes(Stream stream, const ChannelSums& sums, const ChannelFactors& factors,
                   const BatchNormGradients& gradients) {
  launch(stream, "finish_slopes", finish_slopes_kernel, grid_of(pieces(sums.channels, kAcross)),
         dim3(kAcross, kLines), 0, sums, factors, gradients);
}

}  // namespace cputrain::cuda
