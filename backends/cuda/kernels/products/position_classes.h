#pragma once

#include "core/host_device.h"

namespace cputrain::cuda {

/// Along one side of src, the positions that are covered by taps `phase`, phase + stride, ... of
/// windows, and by no others: position + pad is phase modulo stride. Tap phase + i * stride covers
/// the class's position n where window first_window + n - i does. So windows that cover positions
/// of a class lie side by side on dst, with taps against the direction.
struct PositionClass {
  int first, count;  ///< positions first, first + stride, ...
  int taps;          ///< 0: no window covers them
  int taps_before;   ///< those of classes before it
  int first_window;
};

struct PositionClasses {
  int positions, pad, size, stride;

  CPUTRAIN_HOST_DEVICE constexpr PositionClass of(int phase) const {
    const int first = ((phase - pad) % stride + stride) % stride;
    const int count = first < positions ? (positions - 1 - first) / stride + 1 : 0;
    const int taps = phase < size ? (size - 1 - phase) / stride + 1 : 0;
    const int rest = size % stride;
    return {first, count, taps, size / stride * phase + (phase < rest ? phase : rest),
            (first + pad - phase) / stride};
  }
};

}  // namespace cputrain::cuda
