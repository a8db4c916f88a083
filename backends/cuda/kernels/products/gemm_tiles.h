#pragma once

#include <iterator>

#include "backends/cuda/kernels/indices.h"
#include "backends/cuda/kernels/products/gemm_fragments.h"
#include "backends/cuda/kernels/products/gemm_plan.h"

/// Tiles of operands in shared memory: where their chunks of 16 bytes lie, how threads share the
/// copies of them, and how a warp reads fragments. "Rows" of a tile are rows of A, or columns of B.
/// Chunks are swizzled within 128 bytes, so that 8 lanes that move a chunk each meet every bank
/// once.
namespace cputrain::cuda {

/// A step of the main loop is 8 chunks deep, an instruction 2 chunks.
inline constexpr int kChunksOfStep = kStepBytes / kChunkBytes, kInstructionsOfStep = 4;
template <class N>
inline constexpr int kDepthOfStep = kChunksOfStep* kNumbersOfChunk<N>;

/// How rows of a warp's tile are dealt to fragments, 16 or 8 at a time: one after the other.
struct InOrder {
  CPUTRAIN_DEVICE static int row(int fragment, int half, int lane) {
    return 16 * fragment + 8 * half + lane / 4;
  }
  /// Writes a lane's sums of a row to where the warp's tile of that row begins.
  template <int kColumns>
  CPUTRAIN_DEVICE static void put(float* row, const float (&sums)[kColumns][4], int half,
                                  int lane) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      auto* pair = reinterpret_cast<float2*>(row + 8 * j + 2 * (lane % 4));
      *pair = make_float2(sums[j][2 * half], sums[j][2 * half + 1]);
    }
  }
};

/// Rows that lie side by side go to both halves of a fragment: a lane reads them at once.
struct InPairs : InOrder {
  CPUTRAIN_DEVICE static int row(int fragment, int half, int lane) {
    return 16 * fragment + 2 * (lane / 4) + half;
  }
};

/// A lane's part of what ldmatrix reads at a time: four 8 x 8 matrices, two for 16 rows by two for
/// the depth of an instruction. Of A those of all rows come first, of B those of the whole depth,
/// as fragments have them.
template <class Layout, bool kRowsFirst>
class MatrixReader {
 public:
  /// A warp reads rows from `first` on.
  CPUTRAIN_DEVICE MatrixReader(int first, int lane) {
    const int fast = lane / 8 % 2, slow = lane / 16, line = lane % 8;
    offset_ = kRowsFirst ? Layout::matrix_offset(first, fast, slow, line)
                         : Layout::matrix_offset(first, slow, fast, line);
  }

  template <int kCount>
  CPUTRAIN_DEVICE void read(RowFragments<kCount>& fragments, const unsigned char* tile,
                            int instruction) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      Layout::load(fragments.of[i], tile, offset_, i, instruction);
    }
  }
  template <int kCount>
  CPUTRAIN_DEVICE void read(ColumnFragments<kCount>& fragments, const unsigned char* tile,
                            int instruction) const {
#pragma unroll
    for (int j = 0; j < kCount; j += 2) {
      unsigned both[4];
      Layout::load(both, tile, offset_, j / 2, instruction);
#pragma unroll
      for (int r = 0; r < 4; ++r) fragments.of[j + r / 2][r % 2] = both[r];
    }
  }

 private:
  int offset_;
};

/// A tile whose rows' numbers lie one behind the other along the depth: 128 bytes a row.
template <int kRows>
struct DepthInside {
  using Order = InOrder;

  CPUTRAIN_DEVICE static int offset(int row, int chunk) {
    return (row * kChunksOfStep + (chunk ^ row % kChunksOfStep)) * kChunkBytes;
  }

  /// A thread's part of the copies: one chunk of every kRowsAtOnce-th row.
  template <int kThreads>
  struct Share {
    static constexpr int kRowsAtOnce = kThreads / kChunksOfStep, kCopies = kRows / kRowsAtOnce;
    static_assert(kRows % kRowsAtOnce == 0 && kRowsAtOnce % kChunksOfStep == 0);

    int row = thread_number() / kChunksOfStep, chunk = thread_number() % kChunksOfStep;

    CPUTRAIN_DEVICE void copy(unsigned char* tile, int i, const void* from, bool inside) const {
      copy_to_shared(tile + offset(row, chunk) + i * kRowsAtOnce * kStepBytes, from, inside);
    }
  };

  /// Where line `line` of the matrix at eight rows `rows` and chunk `chunk` of an instruction lies.
  CPUTRAIN_DEVICE static int matrix_offset(int first, int rows, int chunk, int line) {
    return offset(first + 8 * rows + line, chunk);
  }
  /// The 16 rows `number` of those that a warp reads. The swizzle is an XOR, so an instruction's
  /// chunk is one more XOR.
  CPUTRAIN_DEVICE static void load(unsigned (&registers)[4], const unsigned char* tile,
                                   int lane_offset, int number, int instruction) {
    load_matrices(registers,
                  tile + (lane_offset ^ instruction * 2 * kChunkBytes) + number * 16 * kStepBytes);
  }
  using Rows = MatrixReader<DepthInside, true>;
  using Columns = MatrixReader<DepthInside, false>;
};

/// What both kinds of numbers share of a tile whose rows lie side by side, one depth behind the
/// other.
template <class N, int kRows>
struct RowsInsideBase {
  static constexpr int kChunks = kRows / kNumbersOfChunk<N>, kPitch = kChunks * kChunkBytes;

  /// A thread's part of the copies: one chunk of rows at every kDepthsAtOnce-th depth.
  template <class Layout, int kThreads>
  struct ShareOf {
    static constexpr int kDepthsAtOnce = kThreads / kChunks;
    static constexpr int kCopies = kDepthOfStep<N> / kDepthsAtOnce;
    static_assert(kThreads % kChunks == 0 && kDepthsAtOnce % Layout::kSwizzlePeriod == 0);

    int depth = thread_number() / kChunks, chunk = thread_number() % kChunks;

    CPUTRAIN_DEVICE void copy(unsigned char* tile, int i, const void* from, bool inside) const {
      copy_to_shared(tile + Layout::offset(depth, chunk) + i * kDepthsAtOnce * kPitch, from,
                     inside);
    }
  };
};

/// Floats: plain loads, of two rows at once, or of a column.
template <class N, int kRows>
struct RowsInside : RowsInsideBase<N, kRows> {
  using Order = InPairs;
  using Base = RowsInsideBase<N, kRows>;
  static constexpr int kSwizzlePeriod = 4;  ///< depths until the swizzle begins again

  template <int kThreads>
  using Share = typename Base::template ShareOf<RowsInside, kThreads>;

  CPUTRAIN_DEVICE static int offset(int depth, int chunk) {
    return (depth * Base::kChunks + (chunk ^ depth % kSwizzlePeriod * 2)) * kChunkBytes;
  }
  CPUTRAIN_DEVICE static int row_offset(int depth, int row) {
    return offset(depth, row / 4) + row % 4 * 4;
  }

  /// Numbers of so many rows side by side: two of A, or a column of B.
  template <int kSide>
  class Reader {
   public:
    CPUTRAIN_DEVICE Reader(int first, int lane)
        : offset_(row_offset(lane % 4, first + kSide * (lane / 4))) {}

    template <int kCount>
    CPUTRAIN_DEVICE void read(RowFragments<kCount>& fragments, const unsigned char* tile,
                              int instruction) const {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const unsigned char* at =
            tile + (offset_ ^ i % 2 * 64) + i / 2 * 128 + instruction * 8 * Base::kPitch;
#pragma unroll
        for (int r = 0; r < 4; r += 2) {
          const uint2 pair = *reinterpret_cast<const uint2*>(at + r * 2 * Base::kPitch);
          fragments.of[i][r] = pair.x;
          fragments.of[i][r + 1] = pair.y;
        }
      }
    }
    template <int kCount>
    CPUTRAIN_DEVICE void read(ColumnFragments<kCount>& fragments, const unsigned char* tile,
                              int instruction) const {
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const unsigned char* at =
            tile + (offset_ ^ j % 4 * 32) + j / 4 * 128 + instruction * 8 * Base::kPitch;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          fragments.of[j][r] = *reinterpret_cast<const unsigned*>(at + r * 4 * Base::kPitch);
        }
      }
    }

   private:
    int offset_;
  };
  using Rows = Reader<2>;
  using Columns = Reader<1>;
};

/// bf16: ldmatrix transposes.
template <int kRows>
struct RowsInside<Bf16Numbers, kRows> : RowsInsideBase<Bf16Numbers, kRows> {
  using Order = InOrder;
  using Base = RowsInsideBase<Bf16Numbers, kRows>;
  static constexpr int kSwizzlePeriod = 8;

  template <int kThreads>
  using Share = typename Base::template ShareOf<RowsInside, kThreads>;

  /// 32 rows are 64 bytes: two depths share the 128 of a swizzle.
  CPUTRAIN_DEVICE static int offset(int depth, int chunk) {
    const int swizzle = Base::kChunks < 8 ? depth / 2 % 4 : depth % 8;
    return (depth * Base::kChunks + (chunk ^ swizzle)) * kChunkBytes;
  }

  CPUTRAIN_DEVICE static int matrix_offset(int first, int rows, int depths, int line) {
    return offset(8 * depths + line, first / 8 + rows);
  }
  CPUTRAIN_DEVICE static void load(unsigned (&registers)[4], const unsigned char* tile,
                                   int lane_offset, int number, int instruction) {
    load_matrices_transposed(registers, tile + (lane_offset ^ number * 2 * kChunkBytes) +
                                            instruction * 16 * Base::kPitch);
  }
  using Rows = MatrixReader<RowsInside, true>;
  using Columns = MatrixReader<RowsInside, false>;
};

/// What a kernel knows of a TileShape: numbers, by which the tables of kernels name it.
template <int kRowsOfBlock, int kColumnsOfBlock, int kRowsOfWarp, int kColumnsOfWarp, int kStagesOf>
struct GemmTile {
  static constexpr int kRows = kRowsOfBlock, kColumns = kColumnsOfBlock, kStages = kStagesOf;
  static constexpr int kWarpRows = kRowsOfWarp, kWarpColumns = kColumnsOfWarp;
  static constexpr int kWarpsAcross = kColumns / kWarpColumns;
  static constexpr int kWarps = kWarpsAcross * (kRows / kWarpRows), kThreads = 32 * kWarps;
  using WarpSums = Sums<kWarpRows / 16, kWarpColumns / 8>;

  struct Stage {
    alignas(128) unsigned char a[kRows * kStepBytes];
    alignas(128) unsigned char b[kColumns * kStepBytes];
  };
};

template <TileShape k>
using TileOf = GemmTile<k.rows, k.columns, k.warp_rows, k.warp_columns, k.stages>;

/// Calls f with a GemmTile of the shape, which is one of kTiles from kIndex on and has kernels, as
/// those that choose_tile() chooses.
template <class N, bool kDepthInside, int kIndex = 0, class F>
void with_tile(const TileShape& shape, const F& f) {
  if constexpr (kIndex < std::size(kTiles)) {
    constexpr TileShape kTile = kTiles[kIndex];
    if (shape != kTile) return with_tile<N, kDepthInside, kIndex + 1>(shape, f);
    if constexpr (has_kernels(kTile, N::kNumbers, kDepthInside)) f(TileOf<kTile>{});
  }
}

/// Where a warp works.
struct WarpOffset {
  int number, lane;
  int row, column;  ///< in the block's tile

  template <class Tile>
  CPUTRAIN_DEVICE static WarpOffset of_thread() {
    const int warp = thread_number() / 32;
    return {warp, thread_number() % 32, warp / Tile::kWarpsAcross * Tile::kWarpRows,
            warp % Tile::kWarpsAcross * Tile::kWarpColumns};
  }
};

}  // namespace cputrain::cuda
