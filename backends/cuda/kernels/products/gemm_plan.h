#pragma once

#include <cstdint>

#include "backends/cuda/kernels/numbers.h"
#include "backends/cuda/kernels/shapes.h"

/// How a matrix product is shared by the blocks of a launch: pure functions of its size and of the
/// number of multiprocessors, so that sums have the same bits every time.
namespace cputrain::cuda {

/// Sizes of a block's part of the result, rows by columns.
enum class GemmTileSize {
  tall,    ///< 128 x 32: few columns (channels of a first layer, classes)
  wide,    ///< 32 x 128: few rows (a small batch of a dense layer, few output channels)
  square,  ///< 64 x 64
  large,   ///< 128 x 64: less traffic, where there are tiles enough
  huge,    ///< 128 x 128: least traffic; not with `exact`, whose sums fill the registers
  tower    ///< 256 x 64: as large, for fewer columns; A is one whose depth lies inside
};

struct TileExtent {
  int rows, columns;
  int warps_beside;  ///< warps along a row of the tile
  int stages;        ///< tiles in shared memory: this step's and those on their way
};
constexpr TileExtent tile_extent(GemmTileSize size) {
  switch (size) {
    case GemmTileSize::tall:
      return {128, 32, 1, 3};
    case GemmTileSize::wide:
      return {32, 128, 4, 3};
    case GemmTileSize::square:
      return {64, 64, 2, 3};
    case GemmTileSize::large:
      return {128, 64, 2, 3};
    case GemmTileSize::huge:
      return {128, 128, 2, 2};
    case GemmTileSize::tower:
      break;
  }
  return {256, 64, 1, 2};
}

/// What is to be multiplied.
struct GemmExtent {
  std::int64_t rows = 1, columns = 1;  ///< the result's, or its largest part's
  std::int64_t depth = 1;              ///< length of its sums
  int parts = 1;                       ///< results of this size at most that one launch makes
  bool depth_inside = true;            ///< numbers of a row of A lie one behind the other
};

struct GemmPlan {
  GemmTileSize tile = GemmTileSize::square;
  int row_tiles = 1, column_tiles = 1;
  int slices = 1;  ///< parts of the depth, each summed by blocks of its own
};

/// Bytes of a row of A, or of a column of B, that a step of the main loop multiplies.
inline constexpr int kStepBytes = 128;
/// A slice has at least so many steps of the main loop: fewer do not pay for its sums' way to
/// memory and back.
inline constexpr int kLeastStepsOfSlice = 8;
/// Blocks of every tile size that a multiprocessor has room for at a time.
inline constexpr int kBlocksOfMultiprocessor = 2;

/// The step with which a slice begins, where the depth has so many: slices differ by one step.
CPUTRAIN_HOST_DEVICE constexpr int slice_begin(int steps, int slice, int slices) {
  return static_cast<int>(offset_of_row(steps, slice) / slices);
}

constexpr std::int64_t tiles_of(const GemmExtent& e, GemmTileSize size) {
  const TileExtent tile = tile_extent(size);
  return pieces(e.rows, tile.rows) * pieces(e.columns, tile.columns) * e.parts;
}

constexpr std::int64_t most_slices(std::int64_t steps) {
  return steps < 2 * kLeastStepsOfSlice ? 1 : steps / kLeastStepsOfSlice;
}

/// Larger tiles read less, but not where they are filled up with more than an eighth of nothing, or
/// where they leave multiprocessors without work. The tallest are fewer, and their last wave is
/// longer: it counts in the same way.
constexpr GemmTileSize choose_tile(const GemmExtent& e, std::int64_t steps, Numbers numbers,
                                   std::int64_t multiprocessors) {
  if (e.columns <= 32) return GemmTileSize::tall;
  if (e.rows <= 32) return GemmTileSize::wide;
  const auto fits = [](std::int64_t side) {
    return pieces(side, 128) * 128 * 8 <= pieces(side, 64) * 64 * 9;
  };
  const auto busy = [&](GemmTileSize size) {
    return tiles_of(e, size) * most_slices(steps) >= multiprocessors;
  };
  const auto waves = [&](GemmTileSize size) {
    return pieces(tiles_of(e, size), multiprocessors * kBlocksOfMultiprocessor);
  };
  if (!fits(e.rows)) return GemmTileSize::square;
  if (numbers != Numbers::exact) {
    if (fits(e.columns) && busy(GemmTileSize::huge)) return GemmTileSize::huge;
    const bool full = 2 * waves(GemmTileSize::tower) * 8 <= waves(GemmTileSize::large) * 9;
    if (e.depth_inside && full) return GemmTileSize::tower;
  }
  return busy(GemmTileSize::large) ? GemmTileSize::large : GemmTileSize::square;
}

constexpr std::int64_t steps_of(const GemmExtent& e, Numbers numbers) {
  return pieces(e.depth, kStepBytes / stored_bytes(numbers));
}

/// Slices for about one wave of blocks, as many as are resident at a time.
constexpr GemmPlan plan_gemm(const GemmExtent& e, Numbers numbers, int multiprocessors) {
  const auto narrow = [](std::int64_t count) { return static_cast<int>(count); };
  const std::int64_t steps = steps_of(e, numbers), most = most_slices(steps);
  const std::int64_t processors = multiprocessors < 1 ? 1 : multiprocessors;
  const GemmTileSize size = choose_tile(e, steps, numbers, processors);
  const TileExtent tile = tile_extent(size);
  const std::int64_t tiles = tiles_of(e, size), wave = processors * kBlocksOfMultiprocessor;
  const std::int64_t wanted = tiles == 0 || wave < tiles ? 1 : wave / tiles;
  return {size, narrow(pieces(e.rows, tile.rows)), narrow(pieces(e.columns, tile.columns)),
          narrow(wanted < most ? wanted : most)};
}

}  // namespace cputrain::cuda
