#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/kernels/shapes.h"

/// How a matrix product is shared by the blocks of a launch: pure functions of its size and of the
/// number of multiprocessors, so that sums have the same bits every time.
namespace cputrain::cuda {

/// Sizes of a block's part of the result, rows by columns.
enum class GemmTileSize {
  tall,    ///< 128 x 32: few columns (channels of a first layer, classes)
  wide,    ///< 32 x 128: few rows (a small batch of a dense layer, few output channels)
  square,  ///< 64 x 64
  large    ///< 128 x 64: least traffic, where there are tiles enough
};

struct TileExtent {
  int rows, columns;
};
constexpr TileExtent tile_extent(GemmTileSize size) {
  switch (size) {
    case GemmTileSize::tall:
      return {128, 32};
    case GemmTileSize::wide:
      return {32, 128};
    case GemmTileSize::square:
      return {64, 64};
    case GemmTileSize::large:
      break;
  }
  return {128, 64};
}

/// What is to be multiplied.
struct GemmExtent {
  std::size_t rows = 1, columns = 1;  ///< of the result, or of its largest part
  std::size_t depth = 1;              ///< length of its sums
  int parts = 1;                      ///< results of this size at most that one launch makes
};

struct GemmPlan {
  GemmTileSize tile = GemmTileSize::square;
  int row_tiles = 1, column_tiles = 1;
  int slices = 1;  ///< of the depth, each summed by blocks of its own
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
  return static_cast<int>(static_cast<std::int64_t>(steps) * slice / slices);
}

constexpr std::size_t tiles_of(const GemmExtent& e, GemmTileSize size) {
  const TileExtent tile = tile_extent(size);
  return pieces(e.rows, static_cast<std::size_t>(tile.rows)) *
         pieces(e.columns, static_cast<std::size_t>(tile.columns)) *
         static_cast<std::size_t>(e.parts);
}

constexpr std::size_t most_slices(std::size_t steps) {
  return steps < 2 * kLeastStepsOfSlice ? 1 : steps / kLeastStepsOfSlice;
}

/// Large tiles read least, but not where they are filled up with more than an eighth of nothing, or
/// where they leave multiprocessors without work.
constexpr GemmTileSize choose_tile(const GemmExtent& e, std::size_t steps,
                                   std::size_t multiprocessors) {
  if (e.columns <= 32) return GemmTileSize::tall;
  if (e.rows <= 32) return GemmTileSize::wide;
  const bool fits = pieces(e.rows, 128) * 128 * 8 <= pieces(e.rows, 64) * 64 * 9;
  const bool busy = tiles_of(e, GemmTileSize::large) * most_slices(steps) >= multiprocessors;
  return fits && busy ? GemmTileSize::large : GemmTileSize::square;
}

/// Slices for about one wave of blocks, as many as are resident at a time. `element`: bytes of an
/// operand's number.
constexpr GemmPlan plan_gemm(const GemmExtent& e, std::size_t element, int multiprocessors) {
  const std::size_t steps = pieces(e.depth, kStepBytes / element);
  const auto processors = static_cast<std::size_t>(multiprocessors < 1 ? 1 : multiprocessors);
  GemmPlan plan;
  plan.tile = choose_tile(e, steps, processors);
  const TileExtent tile = tile_extent(plan.tile);
  plan.row_tiles = static_cast<int>(pieces(e.rows, static_cast<std::size_t>(tile.rows)));
  plan.column_tiles = static_cast<int>(pieces(e.columns, static_cast<std::size_t>(tile.columns)));
  const std::size_t tiles = tiles_of(e, plan.tile), most = most_slices(steps);
  const std::size_t wave = processors * kBlocksOfMultiprocessor;
  const std::size_t wanted = tiles == 0 || wave < tiles ? 1 : wave / tiles;
  plan.slices = static_cast<int>(wanted < most ? wanted : most);
  return plan;
}

}  // namespace cputrain::cuda
