#pragma once

#include "backends/cuda/kernels/shapes.h"

/// Where windows lie on maps, as the gathers of convolutions see it.
namespace cputrain::cuda {

/// A number written with three digits, of which the two lower ones have bases of their own: (row,
/// column, channel) of a tap, (image, row, column) of a window.
struct Digits {
  int low = 0, middle = 0, high = 0;

  CPUTRAIN_HOST_DEVICE static constexpr Digits of(int number, int low_base, int middle_base) {
    const int rest = number / low_base;
    return {number % low_base, rest % middle_base, rest / middle_base};
  }

  CPUTRAIN_HOST_DEVICE constexpr void advance(int by, int low_base, int middle_base) {
    low += by;
    if (low < low_base) return;
    middle += low / low_base;
    low %= low_base;
    if (middle < middle_base) return;
    high += middle / middle_base;
    middle %= middle_base;
  }
};

/// Windows of `images` maps: window (image, i, j) has its corner at (first_row + i * stride,
/// first_column + j * stride) of its map; its tap (r, s) is at the corner + direction * (r, s).
struct WindowGrid {
  int images = 0, high = 1, wide = 1;
  int first_row = 0, first_column = 0, stride = 1;
  MapShape map;
  int tap_rows = 1, tap_columns = 1, direction = 1;

  CPUTRAIN_HOST_DEVICE constexpr int windows() const { return images * high * wide; }
  CPUTRAIN_HOST_DEVICE constexpr int taps() const { return tap_rows * tap_columns * map.channels; }
  CPUTRAIN_HOST_DEVICE constexpr Digits window(int number) const {
    return Digits::of(number, wide, high);
  }
  CPUTRAIN_HOST_DEVICE constexpr Digits tap(int number) const {
    return Digits::of(number, map.channels, tap_columns);
  }
};

/// The windows of a convolution on src.
CPUTRAIN_HOST_DEVICE constexpr WindowGrid windows_on_src(const WindowShape& s) {
  return {s.images, s.dst.height, s.dst.width, -s.top, -s.left, s.stride, s.src, s.size, s.size, 1};
}

/// Along one side of src, the positions that are covered by taps `phase`, phase + stride, ... of
/// windows, and by no others: position + pad is phase modulo stride. Tap phase + i * stride covers
/// the class's position n where window first_window + n - i does.
struct PositionClass {
  int first, count;  ///< positions first, first + stride, ...
  int taps;          ///< 0: no window covers them
  int first_window;

  CPUTRAIN_HOST_DEVICE static constexpr PositionClass of(int phase, int positions, int pad,
                                                         int size, int stride) {
    const int first = ((phase - pad) % stride + stride) % stride;
    const int count = first < positions ? (positions - 1 - first) / stride + 1 : 0;
    const int taps = phase < size ? (size - 1 - phase) / stride + 1 : 0;
    return {first, count, taps, (first + pad - phase) / stride};
  }
};

/// The positions of src whose rows are of class `number` / stride and whose columns are of class
/// `number` % stride: their gradient gathers windows that lie side by side on dst, with taps
/// against the direction, so that no product of theirs is with a gap between windows.
struct PositionClasses {
  PositionClass rows, columns;
  int row_phase, column_phase;

  CPUTRAIN_HOST_DEVICE static constexpr PositionClasses of(const WindowShape& s, int number) {
    const int row = number / s.stride, column = number % s.stride;
    return {PositionClass::of(row, s.src.height, s.top, s.size, s.stride),
            PositionClass::of(column, s.src.width, s.left, s.size, s.stride), row, column};
  }

  CPUTRAIN_HOST_DEVICE constexpr WindowGrid windows_on_dst(const WindowShape& s) const {
    WindowGrid grid{s.images, rows.count, columns.count, rows.first_window, columns.first_window,
                    1,        s.dst,      rows.taps,     columns.taps,      -1};
    // Neither side is 0, because taps are counted by it.
    if (rows.taps == 0 || columns.taps == 0) grid.tap_rows = 0, grid.tap_columns = 1;
    return grid;
  }

  /// The position's place among all of src's.
  CPUTRAIN_HOST_DEVICE constexpr std::size_t position(const WindowShape& s, int row) const {
    const Digits at = Digits::of(row, columns.count, rows.count);
    const int y = rows.first + at.middle * s.stride, x = columns.first + at.low * s.stride;
    return (static_cast<std::size_t>(at.high) * static_cast<std::size_t>(s.src.height) +
            static_cast<std::size_t>(y)) *
               static_cast<std::size_t>(s.src.width) +
           static_cast<std::size_t>(x);
  }
};

}  // namespace cputrain::cuda
