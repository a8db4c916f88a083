#pragma once

#include "backends/cuda/device/language.h"

/// Reductions over a warp, all of whose lanes take part. Partners are the same every time and
/// addition commutes, so every lane gets the same bits.
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

}  // namespace cputrain::cuda
