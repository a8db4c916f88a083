#pragma once

#include "backends/cuda/device/tensor_core.h"
#include "backends/cuda/kernels/gemm_plan.h"

/// Tiles of operands in shared memory: where their chunks of 16 bytes lie, and how a warp reads
/// the fragments of its instructions from them. "Rows" of a tile are rows of A, or columns of B.
/// Chunks lie so that 8 lanes (of ldmatrix) or 32 (of plain loads) meet every bank once.
namespace cputrain::cuda {

inline constexpr int kChunkBytes = 16;
/// Of every precision: a step of the main loop is 8 chunks deep, an instruction 2 chunks.
inline constexpr int kChunksOfStep = kStepBytes / kChunkBytes, kChunksOfInstruction = 2;
inline constexpr int kInstructionsOfStep = kChunksOfStep / kChunksOfInstruction;

/// A tile whose rows' numbers lie one behind the other along the depth: row by row, 128 bytes each,
/// chunks turned by the row. ldmatrix reads fragments of every precision.
template <class Precision, int kRowsOfTile>
struct DepthInside {
  static constexpr int kRows = kRowsOfTile;
  static constexpr int kElements = kRows * Precision::kDepth;

  CPUTRAIN_HOST_DEVICE static constexpr int place(int row, int chunk) {
    return (row * kChunksOfStep + (chunk ^ row % 8)) * Precision::kChunk;
  }

  /// Of A: 16 rows each, from row `first` on, of the step's instruction `instruction`.
  template <int kCount>
  CPUTRAIN_DEVICE static void read_rows(unsigned (&fragments)[kCount][4],
                                        const typename Precision::Element* tile, int first,
                                        int instruction, int lane) {
    const int chunk = instruction * kChunksOfInstruction + lane / 16;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      load_matrices(fragments[i], tile + place(first + 16 * i + lane % 16, chunk));
    }
  }

  /// Of B: 8 columns each.
  template <int kCount>
  CPUTRAIN_DEVICE static void read_columns(unsigned (&fragments)[kCount][2],
                                           const typename Precision::Element* tile, int first,
                                           int instruction, int lane) {
    static_assert(kCount % 2 == 0);
    const int chunk = instruction * kChunksOfInstruction + lane / 8 % 2;
    const int column = first + lane / 16 * 8 + lane % 8;
#pragma unroll
    for (int j = 0; j < kCount; j += 2) {
      unsigned both[4];
      load_matrices(both, tile + place(column + 8 * j, chunk));
      fragments[j][0] = both[0];
      fragments[j][1] = both[1];
      fragments[j + 1][0] = both[2];
      fragments[j + 1][1] = both[3];
    }
  }
};

/// A tile whose rows lie side by side, one depth behind the other and 8 numbers between. How
/// fragments are read is the precision's: by plain loads, or by ldmatrix that transposes.
template <class Precision, int kRowsOfTile>
struct RowsInside {
  static constexpr int kRows = kRowsOfTile;
  static constexpr int kWidth = kRows + 8;
  static constexpr int kElements = kWidth * Precision::kDepth;

  CPUTRAIN_HOST_DEVICE static constexpr int place(int depth, int chunk) {
    return depth * kWidth + chunk * Precision::kChunk;
  }

  template <int kCount>
  CPUTRAIN_DEVICE static void read_rows(unsigned (&fragments)[kCount][4],
                                        const typename Precision::Element* tile, int first,
                                        int instruction, int lane) {
    Precision::template read_rows<RowsInside>(fragments, tile, first, instruction, lane);
  }
  template <int kCount>
  CPUTRAIN_DEVICE static void read_columns(unsigned (&fragments)[kCount][2],
                                           const typename Precision::Element* tile, int first,
                                           int instruction, int lane) {
    Precision::template read_columns<RowsInside>(fragments, tile, first, instruction, lane);
  }
};

/// A block's part of the result and how its warps share it.
template <GemmTileSize kTileSize, int kRowsOfWarp, int kColumnsOfWarp>
struct GemmTile {
  static constexpr int kRows = tile_extent(kTileSize).rows;
  static constexpr int kColumns = tile_extent(kTileSize).columns;
  static constexpr int kWarpRows = kRowsOfWarp, kWarpColumns = kColumnsOfWarp;
  static constexpr int kWarpsBeside = kColumns / kWarpColumns;
  static constexpr int kThreads = 32 * kWarpsBeside * (kRows / kWarpRows);
  /// Instructions of a warp, 16 rows by 8 columns each.
  static constexpr int kRowFragments = kWarpRows / 16, kColumnFragments = kWarpColumns / 8;
};

using TallTile = GemmTile<GemmTileSize::tall, 32, 32>;
using WideTile = GemmTile<GemmTileSize::wide, 32, 32>;
using SquareTile = GemmTile<GemmTileSize::square, 32, 32>;
using LargeTile = GemmTile<GemmTileSize::large, 64, 32>;

}  // namespace cputrain::cuda
