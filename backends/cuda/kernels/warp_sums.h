#pragma once

#include "backends/cuda/kernels/indices.h"

/// Reductions over a warp, or a block, all of whose lanes take part. Partners are the same every
/// time and addition commutes, so every lane of a warp gets the same bits.
namespace cputrain::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

template <class T>
CPUTRAIN_DEVICE T warp_sum(T value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

/// The largest; NaN never wins.
template <class T>
CPUTRAIN_DEVICE T warp_largest(T value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const T other = __shfl_xor_sync(kAllLanes, value, distance);
    value = other > value ? other : value;
  }
  return value;
}

/// The largest value and the first place of it.
struct Winner {
  float value;
  int place;

  CPUTRAIN_DEVICE void meet(float other_value, int other_place) {
    const bool wins = other_value > value || (other_value == value && other_place < place);
    value = wins ? other_value : value;
    place = wins ? other_place : place;
  }
};

CPUTRAIN_DEVICE Winner warp_winner(Winner winner) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const float value = __shfl_xor_sync(kAllLanes, winner.value, distance);
    const int place = __shfl_xor_sync(kAllLanes, winner.place, distance);
    winner.meet(value, place);
  }
  return winner;
}

/// A block's threads are lines (y), a power of two of them, with `across` threads each and kThreads
/// at most in all. The sums of all lines by halves; the first line gets them.
template <int kThreads, class T>
CPUTRAIN_DEVICE T sum_of_lines(const T& own, int across) {
  auto& sums = shared<T[kThreads]>();
  const auto [x, line] = ThreadNumber::of_thread();
  const int thread = line * across + x;
  sums[thread] = own;
  for (int half = BlockSize::of_thread().y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (line < half) sums[thread] += sums[thread + half * across];
  }
  return sums[thread];
}

}  // namespace cputrain::cuda
