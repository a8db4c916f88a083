#pragma once

#include "backends/cuda/kernels/convolution_geometry.h"
#include "backends/cuda/kernels/gemm_tiles.h"

/// What gathers the operands of convolutions: a thread's share of the copies of one tile after the
/// other along the depth. Each has a Source, the same for all threads, begins at (first row of the
/// tile, first depth), and copy() begins to copy a tile and moves on to the next. Where rows or
/// depths end, zeros are filled in. Numbers are counted in 64 bits.
namespace cputrain::cuda {

template <class Element>
struct MapWindows {
  WindowGrid grid;
  const Element* map;
};

/// A matrix that lies row by row. Which side the depth is depends on the operand.
template <class Element>
struct Matrix {
  int rows, columns;
  const Element* values;
};

/// Those weights whose taps cover a class of positions: taps first + i * stride of either side.
template <class Element>
struct ClassWeights {
  int channels, inputs;       ///< of dst, of src
  int tap_rows, tap_columns;  ///< of the class
  int first_row, first_column, stride, size;
  const Element* weights;
};

/// A thread's share of a tile whose rows' numbers lie along the depth: one chunk of every
/// kRowsAtOnce-th row.
template <class Precision, int kRows, int kThreads>
struct DepthInsideShare {
  static constexpr int kRowsAtOnce = kThreads / kChunksOfStep, kCopies = kRows / kRowsAtOnce;
  static_assert(kRows % kRowsAtOnce == 0 && kRowsAtOnce % 8 == 0);
  int row, chunk;

  CPUTRAIN_DEVICE static DepthInsideShare of_thread() {
    const int thread = static_cast<int>(threadIdx.x);
    return {thread / kChunksOfStep, thread % kChunksOfStep};
  }
};

/// A thread's share of a tile whose rows lie side by side: one chunk of rows, at every
/// kDepthsAtOnce-th depth.
template <class Precision, int kRows, int kThreads>
struct RowsInsideShare {
  static constexpr int kChunks = kRows / Precision::kChunk, kDepthsAtOnce = kThreads / kChunks;
  static constexpr int kCopies = Precision::kDepth / kDepthsAtOnce;
  static_assert(kThreads % kChunks == 0 && Precision::kDepth % kDepthsAtOnce == 0);
  int depth, chunk;

  CPUTRAIN_DEVICE static RowsInsideShare of_thread() {
    const int thread = static_cast<int>(threadIdx.x);
    return {thread / kChunks, thread % kChunks};
  }
};

/// Windows of a map by taps.
template <class Precision, int kRows, int kThreads>
class WindowRows {
  using Share = DepthInsideShare<Precision, kRows, kThreads>;

 public:
  using Element = typename Precision::Element;
  using Layout = DepthInside<Precision, kRows>;
  using Source = MapWindows<Element>;

  CPUTRAIN_DEVICE WindowRows(const Source& source, int first_row, int first_depth)
      : source_(source), share_(Share::of_thread()) {
    const WindowGrid& grid = source.grid;
    tap_ = grid.tap(first_depth + share_.chunk * Precision::kChunk);
#pragma unroll
    for (int i = 0; i < Share::kCopies; ++i) {
      const int number = first_row + share_.row + i * Share::kRowsAtOnce;
      const Digits window = grid.window(number);
      const bool exists = number < grid.windows();
      row_[i] = exists ? grid.first_row + window.middle * grid.stride : kNowhere;
      column_[i] = grid.first_column + window.low * grid.stride;
      image_[i] = window.high;
    }
  }

  CPUTRAIN_DEVICE void copy(Element* tile) {
    const WindowGrid& grid = source_.grid;
    const int down = grid.direction * tap_.high, right = grid.direction * tap_.middle;
#pragma unroll
    for (int i = 0; i < Share::kCopies; ++i) {
      const int row = row_[i] + down, column = column_[i] + right;
      const bool inside = tap_.high < grid.tap_rows && row >= 0 && row < grid.map.height &&
                          column >= 0 && column < grid.map.width;
      Element* dst = tile + Layout::place(share_.row + i * Share::kRowsAtOnce, share_.chunk);
      copy_to_shared(dst, source_.map + (inside ? place(image_[i], row, column) : 0), inside);
    }
    tap_.advance(Precision::kDepth, grid.map.channels, grid.tap_columns);
  }

 private:
  static constexpr int kNowhere = -(1 << 29);  ///< no tap reaches the map from there

  CPUTRAIN_DEVICE std::int64_t place(int image, int row, int column) const {
    const MapShape& map = source_.grid.map;
    const std::int64_t rows = static_cast<std::int64_t>(image) * map.height + row;
    return (rows * map.width + column) * map.channels + tap_.low;
  }

  const Source& source_;
  Share share_;
  Digits tap_;
  int image_[Share::kCopies], row_[Share::kCopies], column_[Share::kCopies];
};

/// Rows of a matrix that lies row by row: weights by taps.
template <class Precision, int kRows, int kThreads>
class MatrixRows {
  using Share = DepthInsideShare<Precision, kRows, kThreads>;

 public:
  using Element = typename Precision::Element;
  using Layout = DepthInside<Precision, kRows>;
  using Source = Matrix<Element>;

  CPUTRAIN_DEVICE MatrixRows(const Source& source, int first_row, int first_depth)
      : source_(source), share_(Share::of_thread()) {
    row_ = first_row + share_.row;
    depth_ = first_depth + share_.chunk * Precision::kChunk;
  }

  CPUTRAIN_DEVICE void copy(Element* tile) {
#pragma unroll
    for (int i = 0; i < Share::kCopies; ++i) {
      const int row = row_ + i * Share::kRowsAtOnce;
      const bool inside = row < source_.rows && depth_ < source_.columns;
      const std::int64_t at = static_cast<std::int64_t>(row) * source_.columns + depth_;
      Element* dst = tile + Layout::place(share_.row + i * Share::kRowsAtOnce, share_.chunk);
      copy_to_shared(dst, source_.values + (inside ? at : 0), inside);
    }
    depth_ += Precision::kDepth;
  }

 private:
  const Source& source_;
  Share share_;
  int row_, depth_;
};

/// Columns of a matrix that lies row by row, its rows being the depth: a map's channels by windows.
template <class Precision, int kRows, int kThreads>
class MatrixColumns {
  using Share = RowsInsideShare<Precision, kRows, kThreads>;

 public:
  using Element = typename Precision::Element;
  using Layout = RowsInside<Precision, kRows>;
  using Source = Matrix<Element>;

  CPUTRAIN_DEVICE MatrixColumns(const Source& source, int first_row, int first_depth)
      : source_(source), share_(Share::of_thread()) {
    row_ = first_row + share_.chunk * Precision::kChunk;
    depth_ = first_depth + share_.depth;
  }

  CPUTRAIN_DEVICE void copy(Element* tile) {
#pragma unroll
    for (int i = 0; i < Share::kCopies; ++i) {
      const bool inside = row_ < source_.columns && depth_ < source_.rows;
      const std::int64_t at = static_cast<std::int64_t>(depth_) * source_.columns + row_;
      Element* dst = tile + Layout::place(share_.depth + i * Share::kDepthsAtOnce, share_.chunk);
      copy_to_shared(dst, source_.values + (inside ? at : 0), inside);
      depth_ += Share::kDepthsAtOnce;
    }
  }

 private:
  const Source& source_;
  Share share_;
  int row_, depth_;
};

/// Input channels of weights by the taps of a class of positions, and by output channels.
template <class Precision, int kRows, int kThreads>
class WeightColumns {
  using Share = RowsInsideShare<Precision, kRows, kThreads>;

 public:
  using Element = typename Precision::Element;
  using Layout = RowsInside<Precision, kRows>;
  using Source = ClassWeights<Element>;

  CPUTRAIN_DEVICE WeightColumns(const Source& source, int first_row, int first_depth)
      : source_(source), share_(Share::of_thread()) {
    row_ = first_row + share_.chunk * Precision::kChunk;
    tap_ = Digits::of(first_depth + share_.depth, source.channels, source.tap_columns);
  }

  CPUTRAIN_DEVICE void copy(Element* tile) {
#pragma unroll
    for (int i = 0; i < Share::kCopies; ++i) {
      const bool inside = row_ < source_.inputs && tap_.high < source_.tap_rows;
      Element* dst = tile + Layout::place(share_.depth + i * Share::kDepthsAtOnce, share_.chunk);
      copy_to_shared(dst, source_.weights + (inside ? place() : 0), inside);
      tap_.advance(Share::kDepthsAtOnce, source_.channels, source_.tap_columns);
    }
  }

 private:
  CPUTRAIN_DEVICE std::int64_t place() const {
    const int row = source_.first_row + source_.stride * tap_.high;
    const int column = source_.first_column + source_.stride * tap_.middle;
    const std::int64_t rows = static_cast<std::int64_t>(tap_.low) * source_.size + row;
    return (rows * source_.size + column) * source_.inputs + row_;
  }

  const Source& source_;
  Share share_;
  int row_;
  Digits tap_;
};

/// Taps of windows of a map by windows.
template <class Precision, int kRows, int kThreads>
class WindowColumns {
  using Share = RowsInsideShare<Precision, kRows, kThreads>;

 public:
  using Element = typename Precision::Element;
  using Layout = RowsInside<Precision, kRows>;
  using Source = MapWindows<Element>;

  CPUTRAIN_DEVICE WindowColumns(const Source& source, int first_row, int first_depth)
      : source_(source), share_(Share::of_thread()) {
    const WindowGrid& grid = source.grid;
    const Digits tap = grid.tap(first_row + share_.chunk * Precision::kChunk);
    exists_ = tap.high < grid.tap_rows;
    channel_ = tap.low;
    row_ = grid.first_row + grid.direction * tap.high;
    column_ = grid.first_column + grid.direction * tap.middle;
    window_ = grid.window(first_depth + share_.depth);
  }

  CPUTRAIN_DEVICE void copy(Element* tile) {
    const WindowGrid& grid = source_.grid;
#pragma unroll
    for (int i = 0; i < Share::kCopies; ++i) {
      const int row = row_ + window_.middle * grid.stride;
      const int column = column_ + window_.low * grid.stride;
      const bool inside = exists_ && window_.high < grid.images && row >= 0 &&
                          row < grid.map.height && column >= 0 && column < grid.map.width;
      const std::int64_t rows = static_cast<std::int64_t>(window_.high) * grid.map.height + row;
      const std::int64_t at = (rows * grid.map.width + column) * grid.map.channels + channel_;
      Element* dst = tile + Layout::place(share_.depth + i * Share::kDepthsAtOnce, share_.chunk);
      copy_to_shared(dst, source_.map + (inside ? at : 0), inside);
      window_.advance(Share::kDepthsAtOnce, grid.wide, grid.high);
    }
  }

 private:
  const Source& source_;
  Share share_;
  bool exists_;
  int channel_, row_, column_;
  Digits window_;
};

}  // namespace cputrain::cuda
