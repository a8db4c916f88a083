#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/instruction_set.h"

/// The inner loops of the scheme that README.md beside this file describes, for one instruction
/// set. `b` is the number of channels in a block: 16 with AVX-512, else 8. All pointers are to
/// blocked maps of one image, kernels are [out / b][in / b][tap][b in][b out].
namespace cputrain::cpu::sparse {

/// Entries of a row of tiles: numbers that are not zero, with where their channel's weights begin.
/// Memory for one block more than there can be entries, because whole blocks are written.
struct TileLists {
  float* values;
  std::uint32_t* offsets;
  std::uint32_t* starts;  ///< 4 a tile, one a position; then the end
  std::uint32_t size;     ///< entries so far
};

/// Entries of a tile of windows, by channel of one block: gradients, and where the pixel at the
/// window's winner lies, from the tile's first.
struct ChannelLists {
  float* values;           ///< b x capacity
  std::uint32_t* offsets;  ///< b x capacity
  std::uint32_t* sizes;    ///< b
  std::size_t capacity;
};

/// Gradients of a block of outputs with what says which of them count: those that are not zero and,
/// where `dst` is not null, whose output is positive.
struct Gradients {
  const float* diff;            ///< null: outside
  const float* dst;             ///< null: there is no ReLU
  const std::uint8_t* winners;  ///< null: there is no pool, and every output is its own window
};

/// A row of tiles over a map whose blocks of channels lie `plane` numbers apart.
struct RowShape {
  int tiles;
  int before;  ///< pixels of the first tile that lie outside
  int width;   ///< the map's
  int blocks;
  std::size_t plane;
};

struct ScatterRow {
  const TileLists& lists;
  int tiles;
  const float* weights;
  float* partial;      ///< 2 rows x (2 tiles + 2) x b: sums that this row found, and leaves
  const float* carry;  ///< tiles x 4 x b: sums over channels before these; null: none
};

/// Where a row of windows goes. The window behind tile t (from 1 on) is number t - 1.
struct PoolTarget {
  float* dst;
  std::uint8_t* winners;  ///< null: not wanted
  const float* bias;      ///< null: none
  bool relu;
};

/// Where two rows of pixels go, or are added. Tile t completes columns 2 t - before and the next.
struct StoreTarget {
  float* rows[2];  ///< null: outside
  int before, width;
  const float* bias;  ///< null: none
  bool relu;
  bool adds;
};

struct Kernels {
  int block;
  /// Lists of a row of tiles: of what is not zero in two rows of a map (null: outside it), of the
  /// gradients that count in two rows of them, or of a row of windows, each of which is a tile.
  void (*list_map)(const float* const (&rows)[2], const RowShape&, TileLists&);
  void (*list_gradients)(const Gradients (&rows)[2], const RowShape&, TileLists&);
  void (*list_winners)(const Gradients& row, const RowShape&, TileLists&);

  void (*scatter_and_carry)(const ScatterRow&, float* carry);
  void (*scatter_and_pool)(const ScatterRow&, const PoolTarget&);
  void (*scatter_and_store)(const ScatterRow&, const StoreTarget&);

  /// Appends the gradients of `count` windows of a row to the lists of their channels. Their first
  /// pixels are `pixel`, `pixel` + `step`, ... numbers from the tile's; rows of the source are
  /// `row` numbers long. Adds the gradients to `bias_sum` (b).
  void (*list_windows)(const Gradients&, int count, std::uint32_t pixel, std::uint32_t step,
                       std::uint32_t row, ChannelLists&, float* bias_sum);
  /// For each channel of the lists and each of `blocks` (1 or 2) blocks of the source:
  /// sums[channel][tap][b] += entries times the source's pixels at the nine taps.
  void (*gather)(const ChannelLists&, const float* const* src, int blocks, std::size_t row,
                 float* const* sums);

  /// dst[j][i] = src[i][j], b x b numbers; rows begin so many numbers apart.
  void (*transpose)(const float* src, std::size_t src_row, float* dst, std::size_t dst_row);
};

/// The CPU must have it.
const Kernels& kernels_for(InstructionSet);

// One file each, compiled for its instruction set.
const Kernels& avx512_kernels();
const Kernels& avx2_kernels();
const Kernels& plain_kernels();

}  // namespace cputrain::cpu::sparse
