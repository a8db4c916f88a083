#include "datasets/pixels/convolve.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/casts.h"

namespace cputrain::datasets {
namespace {

using RowBytes = std::uint8_t __attribute__((vector_size(kLanes)));

RowBytes load_bytes(const std::uint8_t* from) {
  RowBytes bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return bytes;
}

void store_bytes(const RowBytes& bytes, std::uint8_t* to) { std::memcpy(to, &bytes, sizeof bytes); }

/// Byte j of row i to byte i of row j: each round puts rows i and i + 8 together, byte by byte.
void transpose_block(std::array<RowBytes, kLanes>& block) {
  for (int round = 0; round < 4; ++round) {
    std::array<RowBytes, kLanes> next;
    for (std::size_t i = 0; i < kLanes / 2; ++i) {
      const RowBytes &a = block[i], &b = block[i + kLanes / 2];
      next[2 * i] =
          __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      next[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,
                                                14, 30, 15, 31);
    }
    block = next;
  }
}

constexpr std::size_t rounded_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

/// Rows [row, row + 16) of the view, those behind its end as its last one, pixels [begin, end).
struct TileOfRows {
  const PixelView& view;
  std::size_t row;
  int begin, end;

  const std::uint8_t* start(std::size_t lane) const {
    const std::size_t last = to_size(view.height) - 1;
    return view.row(std::min(row + lane, last)) + begin * view.right;
  }

  /// As it lies in memory, with rows of whole pixels.
  void read_rows(std::uint8_t* tile) const {
    const auto bytes = to_size(end - begin) * 3;
    std::array<const std::uint8_t*, kLanes> from;
    for (std::size_t lane = 0; lane < kLanes; ++lane) from[lane] = start(lane);
    std::array<RowBytes, kLanes> block;
    for (std::size_t at = 0; at < bytes; at += kLanes) {
      const std::size_t there = std::min(kLanes, bytes - at);
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        if (there == kLanes) {
          block[lane] = load_bytes(from[lane] + at);
        } else {
          std::array<std::uint8_t, kLanes> rest{};
          std::memcpy(rest.data(), from[lane] + at, there);
          block[lane] = load_bytes(rest.data());
        }
      }
      transpose_block(block);
      for (std::size_t i = 0; i < kLanes; ++i) store_bytes(block[i], tile + (at + i) * kLanes);
    }
  }

  /// Turned or mirrored.
  void read_pixels(std::uint8_t* tile) const {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::uint8_t* from = start(lane);
      std::uint8_t* to = tile + lane;
      for (int x = begin; x < end; ++x, from += view.right, to += kTilePixel) {
        to[0] = from[0];
        to[kLanes] = from[1];
        to[2 * kLanes] = from[2];
      }
    }
  }
};

/// A tile of so many bytes a row, back to rows.
void write_rows(const std::uint8_t* tile, std::size_t bytes, std::uint8_t* rows,
                std::size_t stride) {
  std::array<RowBytes, kLanes> block;
  for (std::size_t at = 0; at < bytes; at += kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) block[i] = load_bytes(tile + (at + i) * kLanes);
    transpose_block(block);
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      store_bytes(block[lane], rows + lane * stride + at);
  }
}

/// Needed rows of the image, brought to the new width.
struct Narrowed {
  int first;
  std::size_t stride;
  std::vector<std::uint8_t> bytes;
};

Narrowed convolve_columns(const PixelView& view, int first_row, int last_row,
                          const FilterTaps& columns, const ConvolveKernels& kernels) {
  const auto rows = to_size(last_row - first_row + 1);
  const std::size_t width = columns.taps.size() * 3;
  Narrowed result{first_row, rounded_up(width, kStrip), {}};
  result.bytes.resize(rounded_up(rows, kLanes) * result.stride);
  const int begin = columns.first_pixel(), end = columns.last_pixel() + 1;
  std::vector<std::uint8_t> tile(rounded_up(to_size(end - begin) * 3, kLanes) * kLanes);
  std::vector<std::uint8_t> narrow(rounded_up(width, kLanes) * kLanes);
  for (std::size_t row = 0; row < rows; row += kLanes) {
    const TileOfRows source{view, to_size(first_row) + row, begin, end};
    view.right == 3 ? source.read_rows(tile.data()) : source.read_pixels(tile.data());
    kernels.tile(tile.data(), begin, columns, narrow.data());
    write_rows(narrow.data(), width, result.bytes.data() + row * result.stride, result.stride);
  }
  return result;
}

}  // namespace

void convolve(const PixelView& view, const FilterTaps& rows, const FilterTaps& columns,
              std::uint8_t* dst, std::size_t stride, const ConvolveKernels& kernels) {
  const Narrowed source =
      convolve_columns(view, rows.first_pixel(), rows.last_pixel(), columns, kernels);
  const std::size_t width = columns.taps.size() * 3;
  std::vector<std::uint8_t> row(source.stride);
  for (const FilterTaps::Tap& tap : rows.taps) {
    const auto begin = to_size(tap.begin - source.first);
    kernels.rows(source.bytes.data() + begin * source.stride, source.stride, tap.count,
                 rows.weights.data() + tap.weights_at, width, row.data());
    dst = std::copy_n(row.data(), width, dst) + (stride - width);
  }
}

}  // namespace cputrain::datasets
