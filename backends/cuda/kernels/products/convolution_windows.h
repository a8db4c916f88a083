#pragma once

#include "backends/cuda/kernels/divisor.h"
#include "backends/cuda/kernels/products/convolution.h"
#include "backends/cuda/kernels/products/gemm.h"

/// Where windows and their taps lie on a map, as the copies of convolutions see it.
namespace cputrain::cuda {

/// A window's corner on a map, or a tap's offset from there. Their sum is where the tap of the
/// window is.
struct alignas(8) MapOffset {
  int chunk;        ///< 16 bytes each, from the map's begin on
  int coordinates;  ///< row * 2^16 + column, either may be negative

  CPUTRAIN_HOST_DEVICE static MapOffset at(int chunk, int row, int column) {
    return {chunk, row * (1 << 16) + column};
  }
  /// Neither it nor a sum with it is on a map.
  CPUTRAIN_DEVICE static MapOffset outside() { return {0, -(1 << 30)}; }

  CPUTRAIN_DEVICE bool exists() const { return coordinates != outside().coordinates; }
  CPUTRAIN_DEVICE friend MapOffset operator+(const MapOffset& a, const MapOffset& b) {
    return {a.chunk + b.chunk, a.coordinates + b.coordinates};
  }
};

/// A map of many images.
struct ChunkMap {
  const void* begin;
  int height, width;
  int chunks;  ///< in a position
  int last;    ///< row and column, as MapOffset has them

  template <class N>
  static ChunkMap of(const MapShape& shape, const void* begin) {
    return {begin, shape.height, shape.width, shape.channels / kNumbersOfChunk<N>,
            MapOffset::at(0, shape.height - 1, shape.width - 1).coordinates};
  }

  CPUTRAIN_DEVICE MapOffset at(int image, int row, int column) const {
    return MapOffset::at(((image * height + row) * width + column) * chunks, row, column);
  }
  /// Neither row nor column is negative, nor is what is left to the last ones. Both tests look at
  /// the signs of two 16-bit numbers at once: a column below zero borrows from its row, but leaves
  /// bit 15 set.
  CPUTRAIN_DEVICE bool has(const MapOffset& offset) const {
    const auto at = static_cast<unsigned>(offset.coordinates);
    return ((at | (static_cast<unsigned>(last) - at)) & 0x80008000u) == 0;
  }
};

/// Windows of a map: window (image, i, j) has its corner at (first_row + i * down, first_column + j
/// * across).
struct Windows {
  ChunkMap map;
  int count;  ///< in all images
  PositionNumbers numbers;
  int first_row, first_column, down, across;

  CPUTRAIN_DEVICE MapOffset corner(int number) const {
    const Position at = numbers.position(number);
    return map.at(at.image, first_row + at.row * down, first_column + at.column * across);
  }
};

/// Taps of a window, chunk by chunk: tap (r, s) is at the window's corner + direction * (r, s).
struct Taps {
  int rows;
  Divisor columns, chunks;
  int direction;

  CPUTRAIN_DEVICE MapOffset offset(int number, const ChunkMap& map) const {
    const Digits at = Digits::of(number, chunks, columns);
    if (at.high >= rows) return MapOffset::outside();
    const int row = direction * at.high, column = direction * at.middle;
    return MapOffset::at((row * map.width + column) * map.chunks + at.low, row, column);
  }
};

/// The windows of a convolution on src, and their taps.
template <class N>
Windows windows_on_src(const WindowShape& s, const void* src) {
  return {ChunkMap::of<N>(s.src, src),
          s.windows(),
          {Divisor(s.dst.height), Divisor(s.dst.width)},
          -s.top,
          -s.left,
          s.stride,
          s.stride / s.pixels};
}
template <class N>
Taps taps_on_src(const WindowShape& s) {
  return {s.size, Divisor(s.columns()), Divisor(s.src.channels / kNumbersOfChunk<N>), 1};
}

/// A product of windows, row by row, with weights that lie column by column: both by taps.
struct WindowProduct {
  int rows, columns, depth;
  Windows windows;
  Taps taps;
  const void* weights;
};

/// The predicated iterator of windows and weights. A thread keeps the corners of the windows that
/// it copies. The table has the taps' offsets for the next steps, since all windows have the same.
/// Rows and columns behind the last are the last one's again; their sums are not stored.
template <class N, class Tile>
class WindowIterator {
 public:
  using A = DepthInside<Tile::kRows>;
  using B = DepthInside<Tile::kColumns>;
  /// Fewer in tiles of 256 rows, of which two blocks fill an A100's shared memory.
  static constexpr int kSteps = Tile::kRows > 128 ? 16 : 128;
  struct Table {
    MapOffset taps[kSteps * kChunksOfStep];
  };

  CPUTRAIN_DEVICE WindowIterator(const WindowProduct& product, const TileOffset& tile)
      : product_(product), precomputed_(tile.begin * kChunksOfStep) {
#pragma unroll
    for (int i = 0; i < ShareOfA::kCopies; ++i) {
      const int row = tile.row + of_a_.row + i * ShareOfA::kRowsAtOnce;
      corners_[i] = product.windows.corner(min(row, product.rows - 1));
      keep(corners_[i].chunk);
      keep(corners_[i].coordinates);
    }
#pragma unroll
    for (int i = 0; i < ShareOfB::kCopies; ++i) {
      const int column = tile.column + of_b_.row + i * ShareOfB::kRowsAtOnce;
      const int chunks = product.depth / kNumbersOfChunk<N>;
      weights_[i] = min(column, product.columns - 1) * chunks + precomputed_ + of_b_.chunk;
    }
  }

  CPUTRAIN_DEVICE void precompute(Table& table, int steps) {
    const int chunks = steps * kChunksOfStep;
#pragma unroll 1
    for (int i = thread_number(); i < chunks; i += Tile::kThreads) {
      table.taps[i] = product_.taps.offset(precomputed_ + i, product_.windows.map);
    }
    precomputed_ += chunks;
    next_ = table.taps + of_a_.chunk;
  }

  CPUTRAIN_DEVICE void copy(typename Tile::Stage& stage) {
    const ChunkMap& map = product_.windows.map;
    const MapOffset tap = *next_;
    next_ += kChunksOfStep;
#pragma unroll
    for (int i = 0; i < ShareOfA::kCopies; ++i) {
      const MapOffset offset = corners_[i] + tap;
      of_a_.copy(stage.a, i, chunk_of(map.begin, offset.chunk), map.has(offset));
    }
#pragma unroll
    for (int i = 0; i < ShareOfB::kCopies; ++i) {
      of_b_.copy(stage.b, i, chunk_of(product_.weights, weights_[i]), tap.exists());
      weights_[i] += kChunksOfStep;
    }
  }

 private:
  using ShareOfA = typename A::template Share<Tile::kThreads>;
  using ShareOfB = typename B::template Share<Tile::kThreads>;

  const WindowProduct& product_;
  int precomputed_;  ///< chunks of the depth
  const MapOffset* next_;
  ShareOfA of_a_;
  ShareOfB of_b_;
  MapOffset corners_[ShareOfA::kCopies];
  int weights_[ShareOfB::kCopies];
};

}  // namespace cputrain::cuda
