#pragma once

#include "backends/cuda/kernels/divisor.h"

namespace cputrain::cuda {

/// Along one side of src, the positions that are covered by taps `phase`, phase + stride, ... of
/// windows, and by no others: position + pad is phase modulo stride. Tap phase + i * stride covers
/// the class's position n where window first_window + n - i does. So windows that cover a class's
/// positions lie side by side on dst, with taps against the direction: each class is a convolution
/// with stride 1, and none multiplies the zeros that a stride would put between windows.
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

/// Where taps lie in transposed weights: [class][input channel][tap of the class].
struct TransposedTaps {
  Divisor size, stride;
  int whole, rest;  ///< size / stride, size % stride

  static TransposedTaps of(int size, int stride) {
    return {Divisor(size), Divisor(stride), size / stride, size % stride};
  }

  struct Tap {
    int before;  ///< taps of classes before
    int taps;    ///< in the class
    int number;  ///< the tap's among them
  };
  CPUTRAIN_HOST_DEVICE constexpr Tap tap(int position) const {
    const int row = size.quotient(position);
    const Tap rows = on_side(row), columns = on_side(position - row * size.number());
    return {rows.before * size.number() + rows.taps * columns.before, rows.taps * columns.taps,
            rows.number * columns.taps + columns.number};
  }

 private:
  CPUTRAIN_HOST_DEVICE constexpr Tap on_side(int tap) const {
    const int number = stride.quotient(tap), phase = tap - number * stride.number();
    const bool longer = phase < rest;
    return {whole * phase + (longer ? phase : rest), whole + longer, number};
  }
};

}  // namespace cputrain::cuda
