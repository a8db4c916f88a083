#pragma once

#include "backends/cuda/device/language.h"
#include "backends/cuda/kernels/batch_norm/batch_norm.h"
#include "backends/cuda/kernels/packs.h"

/// What kernels that read maps of norms share: factors of their channels, and how ChannelSums are
/// made: a block has a part of the positions, whose threads become one.
namespace cputrain::cuda {

/// A row of factors for the channels of a pack.
template <class N>
CPUTRAIN_DEVICE Pack<N> load_factors(const ChannelFactors& factors, ChannelFactors::Row row,
                                     int channel) {
  return Pack<N>::of_floats(factors.of(row) + channel);
}

/// What normalises the channels of a pack.
template <class N>
struct Normalization {
  Pack<N> mean, scale, shift;

  CPUTRAIN_DEVICE static Normalization load(const ChannelFactors& factors, int channel) {
    return {load_factors<N>(factors, ChannelFactors::mean, channel),
            load_factors<N>(factors, ChannelFactors::scale, channel),
            load_factors<N>(factors, ChannelFactors::shift, channel)};
  }
  /// Rounded alike wherever it is computed, so that backward finds the sign that forward saw.
  CPUTRAIN_DEVICE float normalized(int i, float value) const {
    return __fmaf_rn(__fsub_rn(value, mean.of[i]), scale.of[i], shift.of[i]);
  }
};

/// A block has one part of the positions and a tile of packs; its rows of threads share the
/// positions.
struct SumLaunch {
  int tiles, across, rows;

  template <class N>
  static SumLaunch over(int channels) {
    constexpr int kWidest = 32;
    const int packs = channels / Pack<N>::kCount, tiles = pieces(packs, kWidest);
    const int across = pieces(packs, tiles);
    return {tiles, across, kPackThreads / across};
  }
  dim3 grid(const ChannelSums& sums) const { return grid_of(sums.parts, tiles); }
  dim3 block() const { return grid_of(across, rows); }
};

/// Blocks for each multiprocessor, which has room for them.
inline constexpr int kBlocksEach = 2;

/// What a thread has of its part: positions first, first + step, ... before end. None where its
/// channels lie behind the last.
struct ThreadsPart {
  int channel, first, end, step;

  template <class N>
  CPUTRAIN_DEVICE static ThreadsPart of_thread(const ChannelSums& sums) {
    const PackPlace own = PackPlace::of_thread<N>();
    const int part = block_number(), row = ThreadNumber::of_thread().y;
    const int begin = part * static_cast<int>(sums.of_part);
    const double count = own.channel < sums.channels ? sums.positions_of(part) : 0;
    return {own.channel, begin + row, begin + static_cast<int>(count), BlockSize::of_thread().y};
  }
  CPUTRAIN_DEVICE std::int64_t offset(int position, const ChannelSums& sums) const {
    return PackPlace{position, channel}.offset(sums.channels);
  }
};

/// Moments of `count` positions, merged as Chan, Golub and LeVeque have it ("Updating formulae and
/// a pairwise algorithm for computing sample variances", 1979).
template <class N, int kSize = kNumbersOfChunk<N>>
struct Moments {
  using Numbers = Pack<N, kSize>;

  float count;
  Numbers mean, squares;

  CPUTRAIN_DEVICE static Moments none() { return {0, Numbers::all(0), Numbers::all(0)}; }
  CPUTRAIN_DEVICE void merge(const Moments& other) {
    if (other.count == 0) return;
    const float all = count + other.count, part = other.count / all, weight = count * part;
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const float apart = other.mean.of[i] - mean.of[i];
      mean.of[i] += apart * part;
      squares.of[i] += other.squares.of[i] + apart * apart * weight;
    }
    count = all;
  }
  CPUTRAIN_DEVICE const Numbers& first() const { return mean; }
  CPUTRAIN_DEVICE const Numbers& second() const { return squares; }
};

template <class N, int kSize = kNumbersOfChunk<N>>
struct Slopes {
  using Numbers = Pack<N, kSize>;

  Numbers sum, product;

  CPUTRAIN_DEVICE static Slopes none() { return {Numbers::all(0), Numbers::all(0)}; }
  CPUTRAIN_DEVICE void merge(const Slopes& other) {
    sum += other.sum;
    product += other.product;
  }
  CPUTRAIN_DEVICE const Numbers& first() const { return sum; }
  CPUTRAIN_DEVICE const Numbers& second() const { return product; }
};

/// The block's rows become one, in halves, which is written as what its part has.
template <class N, class T>
CPUTRAIN_DEVICE void write_part(T own, int channel, const ChannelSums& sums) {
  auto& threads = shared<T[kPackThreads]>();
  const auto [across, down] = BlockSize::of_thread();
  const auto [x, y] = ThreadNumber::of_thread();
  threads[y * across + x] = own;
  for (int left = down; left > 1;) {
    const int half = (left + 1) / 2;
    __syncthreads();
    if (y + half < left) {
      own.merge(threads[(y + half) * across + x]);
      threads[y * across + x] = own;
    }
    left = half;
  }
  if (y > 0 || channel >= sums.channels) return;
  float* const part = sums.of(block_number()) + channel;
#pragma unroll
  for (int i = 0; i < Pack<N>::kCount; ++i) {
    part[i] = own.first().of[i];
    part[sums.channels + i] = own.second().of[i];
  }
}

}  // namespace cputrain::cuda
