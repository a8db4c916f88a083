#pragma once

#include <cstdint>

#include "backends/cuda/kernels/numbers.h"
#include "backends/cuda/kernels/shapes.h"

/// How a matrix product is shared by the blocks of a launch: pure functions of its size and of the
/// number of multiprocessors, so that sums have the same bits every time. Slices of the depth
/// decide on these. A tile does not, so another one may take the rule's place
/// (ops/tile_trials.h).
namespace cputrain::cuda {

/// A block's part of the result and a warp's part of that, both rows by columns; and for how many
/// steps of the main loop shared memory has room: this one, and those on their way.
struct TileShape {
  int rows, columns;
  int warp_rows, warp_columns;
  int stages;

  /// Warps along a row of the tile.
  constexpr int warps_across() const { return columns / warp_columns; }
  bool operator==(const TileShape&) const = default;
};

/// Few columns: channels of a first layer, classes.
inline constexpr TileShape kTile128x32{128, 32, 32, 32, 3};
/// Few rows: a small batch of a dense layer, few output channels.
inline constexpr TileShape kTile32x128{32, 128, 32, 32, 3};
inline constexpr TileShape kTile64x64{64, 64, 32, 32, 3};
/// Less traffic, where there are tiles enough.
inline constexpr TileShape kTile128x64{128, 64, 64, 32, 3};
/// Least traffic.
inline constexpr TileShape kTile128x128{128, 128, 64, 64, 2};
/// As large, for fewer columns.
inline constexpr TileShape kTile256x64{256, 64, 64, 64, 2};

inline constexpr TileShape kTiles[] = {kTile128x32, kTile32x128,  kTile64x64,
                                       kTile128x64, kTile128x128, kTile256x64};

/// What is to be multiplied.
struct GemmExtent {
  std::int64_t rows = 1, columns = 1;  ///< the result's, or its largest part's
  std::int64_t depth = 1;              ///< length of its sums
  int parts = 1;                       ///< results of this size at most that one launch makes
  bool depth_inside = true;            ///< numbers of a row of A lie one behind the other
};

/// What products of such numbers have kernels of. Sums of `exact` would fill the registers in the
/// two largest. 256 rows whose depth lies outside have 128 threads copy too few depths at a time.
constexpr bool has_kernels(const TileShape& tile, Numbers numbers, bool depth_inside) {
  if (numbers == Numbers::exact && tile.warp_columns > 32) return false;
  return depth_inside || tile != kTile256x64;
}

struct GemmPlan {
  TileShape tile = kTile64x64;
  int row_tiles = 1, column_tiles = 1;
  int slices = 1;  ///< parts of the depth, each summed by blocks of its own (split-K)
};

/// Bytes of a row of A, or of a column of B, that a step of the main loop multiplies.
inline constexpr int kStepBytes = 128;
/// A slice of the depth (split-K) has at least so many steps of the main loop: fewer do not pay for
/// its sums' way to memory and back.
inline constexpr int kLeastStepsOfSlice = 8;
/// Blocks of every tile size that a multiprocessor has room for at a time.
inline constexpr int kBlocksOfMultiprocessor = 2;

constexpr std::int64_t tiles_of(const GemmExtent& e, const TileShape& tile) {
  return pieces(e.rows, tile.rows) * pieces(e.columns, tile.columns) * e.parts;
}

constexpr std::int64_t most_slices(std::int64_t steps) {
  return steps < 2 * kLeastStepsOfSlice ? 1 : steps / kLeastStepsOfSlice;
}

/// Larger tiles read less, but not where they are filled up with more than an eighth of nothing, or
/// where they leave multiprocessors without work. Those of 256 rows are fewer, and their last wave
/// is longer: it counts in the same way.
constexpr TileShape choose_tile(const GemmExtent& e, std::int64_t steps, Numbers numbers,
                                std::int64_t multiprocessors) {
  if (e.columns <= 32) return kTile128x32;
  if (e.rows <= 32) return kTile32x128;
  const auto fits = [](std::int64_t side) {
    return pieces(side, 128) * 128 * 8 <= pieces(side, 64) * 64 * 9;
  };
  const auto may = [&](const TileShape& tile) {
    return has_kernels(tile, numbers, e.depth_inside);
  };
  const auto busy = [&](const TileShape& tile) {
    return tiles_of(e, tile) * most_slices(steps) >= multiprocessors;
  };
  const auto waves = [&](const TileShape& tile) {
    return pieces(tiles_of(e, tile), multiprocessors * kBlocksOfMultiprocessor);
  };
  if (!fits(e.rows)) return kTile64x64;
  if (may(kTile128x128) && fits(e.columns) && busy(kTile128x128)) return kTile128x128;
  const bool full = 2 * waves(kTile256x64) * 8 <= waves(kTile128x64) * 9;
  if (may(kTile256x64) && full) return kTile256x64;
  return busy(kTile128x64) ? kTile128x64 : kTile64x64;
}

constexpr GemmPlan plan_by_tile(const GemmExtent& e, const TileShape& tile, int slices) {
  const auto count = [](std::int64_t all, int of) { return static_cast<int>(pieces(all, of)); };
  return {tile, count(e.rows, tile.rows), count(e.columns, tile.columns), slices};
}

/// Whether a product might be quicker by a tile than by the rule's: it multiplies less than half as
/// much again, what fills it up included, and reads less than twice as much.
constexpr bool may_pay(const GemmExtent& e, const TileShape& rule, const TileShape& tile) {
  const auto products = [&](const TileShape& t) { return tiles_of(e, t) * t.rows * t.columns; };
  const auto reads = [&](const TileShape& t) { return tiles_of(e, t) * (t.rows + t.columns); };
  return 2 * products(tile) < 3 * products(rule) && reads(tile) < 2 * reads(rule);
}

constexpr std::int64_t steps_of(const GemmExtent& e, Numbers numbers) {
  return pieces(e.depth, kStepBytes / stored_bytes(numbers));
}

/// Slices for about one wave of blocks, as many as are resident at a time.
constexpr GemmPlan plan_gemm(const GemmExtent& e, Numbers numbers, int multiprocessors) {
  const std::int64_t steps = steps_of(e, numbers), most = most_slices(steps);
  const std::int64_t processors = multiprocessors < 1 ? 1 : multiprocessors;
  const TileShape tile = choose_tile(e, steps, numbers, processors);
  const std::int64_t tiles = tiles_of(e, tile), wave = processors * kBlocksOfMultiprocessor;
  const std::int64_t wanted = tiles == 0 || wave < tiles ? 1 : wave / tiles;
  return plan_by_tile(e, tile, static_cast<int>(wanted < most ? wanted : most));
}

}  // namespace cputrain::cuda
