#pragma once

#include "backends/cuda/kernels/divisor.h"
#include "backends/cuda/kernels/packs.h"

/// Which numbers of a map a window covers, and which windows cover a place of it.
namespace cputrain::cuda {

inline PositionNumbers positions_of(const MapShape& map) {
  return {Divisor(map.height), Divisor(map.width)};
}

CPUTRAIN_DEVICE std::int64_t offset_of(int image, int row, int column, const MapShape& map) {
  return offset_of_row((image * map.height + row) * map.width + column, map.channels);
}

/// Windows first .. last along one side that cover the place.
struct Covering {
  int first, last;
};
CPUTRAIN_DEVICE Covering covering(int place, int before, int size, int stride, int windows) {
  const int at = place + before;
  const int last = at / stride;
  return {at < size ? 0 : (at - size) / stride + 1, last < windows ? last : windows - 1};
}

/// f(place in the window, offset in src) for what window (row, column) covers of src, in the order
/// of rows, and outside(place in the window) for the rest. kSize is the window's size, known to the
/// compiler, or 0 for any.
template <int kSize, class F, class Outside>
CPUTRAIN_DEVICE void for_taps(const WindowShape& shape, const Position& window, F f,
                              Outside outside) {
  const int size = kSize > 0 ? kSize : shape.size;
  const int top = window.row * shape.stride - shape.top;
  const int left = window.column * shape.stride - shape.left;
#pragma unroll
  for (int i = 0; i < size; ++i) {
#pragma unroll
    for (int j = 0; j < size; ++j) {
      const int row = top + i, column = left + j;
      if (row >= 0 && row < shape.src.height && column >= 0 && column < shape.src.width) {
        f(i * size + j, offset_of(window.image, row, column, shape.src));
      } else {
        outside(i * size + j);
      }
    }
  }
}

/// A window that covers a place of src: where it lies in dst, and the place's number in it.
struct CoveringWindow {
  std::int64_t offset;
  int row, column, tap;
};

/// A thread has a pack of src's gradient. add_to(sum, window, first channel) for the windows that
/// cover it, in their order; `add`: to what is there.
template <class N, class F>
CPUTRAIN_DEVICE void gather(const WindowShape& shape, const PositionNumbers& positions,
                            typename N::Stored* diff_src, bool add, F add_to) {
  const auto place = PackPlace::of_thread<N>();
  if (!place.inside(shape.positions(), shape.src.channels)) return;
  typename N::Stored* const target = diff_src + place.offset(shape.src.channels);
  Pack<N> sum = begin_sum<N>(target, add);
  const Position at = positions.position(place.position);
  const Covering rows = covering(at.row, shape.top, shape.size, shape.stride, shape.dst.height);
  const Covering columns =
      covering(at.column, shape.left, shape.size, shape.stride, shape.dst.width);
#pragma unroll 1
  for (int row = rows.first; row <= rows.last; ++row) {
    const int i = at.row + shape.top - row * shape.stride;
#pragma unroll 1
    for (int column = columns.first; column <= columns.last; ++column) {
      const int j = at.column + shape.left - column * shape.stride;
      const std::int64_t offset = offset_of(at.image, row, column, shape.dst);
      add_to(sum, CoveringWindow{offset, row, column, i * shape.size + j}, place.channel);
    }
  }
  sum.store(target);
}

}  // namespace cputrain::cuda
