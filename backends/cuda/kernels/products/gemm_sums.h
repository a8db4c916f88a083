#pragma once

#include "backends/cuda/kernels/batch_norm/batch_norm.h"
#include "backends/cuda/kernels/products/gemm_epilogue.h"

/// Two sums of each column that an epilogue makes besides, for a batch norm: a part (ChannelSums)
/// for the rows of each block's tile. Parameters that have kSums have them as `sums`. Epilogue then
/// has
///   begin(sums, at)               before all others: the first row of the warp's tile
///   leave(rows, line, column)     writes a lane's own to its warp's tile, which all have read: at
///                                 most 3 rows for each line of lanes
///   of_lines<L>(rows, column, n)  those of L lines and a column, over n rows; they can be merged
namespace cputrain::cuda {

/// Writes the part of a block's tile, whose first row and column these are. All threads take part.
template <class Tile, class Parameters>
CPUTRAIN_DEVICE void write_sums(
    const Parameters& parameters, int first_row, int first_column, int rows,
    const float (&sums)[Tile::kWarps][Tile::kWarpRows][Tile::kWarpColumns + 8]) {
  if constexpr (Parameters::kSums) {
    using Own = Epilogue<Parameters>;
    constexpr int kLines = 32 * Own::Sums::kCount / Tile::kWarpColumns;
    static_assert(Tile::kThreads >= Tile::kColumns && 3 * kLines <= Tile::kWarpRows);
    __syncthreads();
    const int in_tile = thread_number(), column = first_column + in_tile;
    if (in_tile >= Tile::kColumns || column >= parameters.sums.channels) return;
    auto made = Own::OfColumn::none();
#pragma unroll
    for (int i = 0; i < Tile::kRows / Tile::kWarpRows; ++i) {
      const int count = min(rows - first_row - i * Tile::kWarpRows, Tile::kWarpRows);
      if (count <= 0) break;
      made.merge(Own::template of_lines<kLines>(
          sums[i * Tile::kWarpsAcross + in_tile / Tile::kWarpColumns], in_tile % Tile::kWarpColumns,
          count));
    }
    float* const to = parameters.sums.of(first_row / Tile::kRows) + column;
    to[0] = made.first().of[0];
    to[parameters.sums.channels] = made.second().of[0];
  }
}

}  // namespace cputrain::cuda
