#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/instruction_set.h"

/// The inner loops of the scheme that README.md beside this file describes, for one instruction
/// set. `b` is the number of channels in a block: 16 with AVX-512, else 8. What is transformed lies
/// in 36 planes, one for each point; `plane` is the distance from one to the next, in numbers.
namespace cputrain::cpu::winograd {

constexpr int kTile = 4;             ///< outputs, each way
constexpr int kPatch = 6;            ///< what a tile of outputs reads, each way
constexpr std::size_t kPoints = 36;  ///< products of a tile, for each pair of channels

/// Neighbouring tiles of a row, in one block of channels of one image's map.
struct TileRun {
  int y, x;           ///< the first pixel of the first tile's patch or outputs; may lie outside
  int height, width;  ///< the map's
  int count;          ///< tiles, each kTile pixels further
};

/// What follows the sums of a forward pass.
struct Finish {
  const float* bias;  ///< b numbers; null: none
  bool relu;
};

/// A product of matrices at one point: c = a b. `a` is [k / b][tiles][b], `b` is [k][vectors][b],
/// `c` is [vectors][tiles][b]; blocks of `a` and of `c` have memory for `capacity` tiles.
struct Product {
  const float* a;
  const float* b;
  float* c;
  std::size_t capacity;
  int tiles;
  int blocks;   ///< k / b
  int vectors;  ///< 1 or 2
};

/// A sum over tiles at one point: c = a^T b, or c += a^T b. `a` is [rows / b][tiles][b], `b` is
/// [vectors][tiles][b], `c` is [rows][vectors][b]; `capacity` as above.
struct OuterSum {
  const float* a;
  const float* b;
  float* c;
  std::size_t capacity;
  int tiles;
  int blocks;   ///< rows / b
  int vectors;  ///< 1 or 2
  bool adds;
};

struct Kernels {
  int block;
  /// A kernel's taps for one block of inputs and one of outputs, [tap][b in][b out]; rows of inputs
  /// begin `row` numbers apart in what is transformed.
  void (*transform_kernel)(const float* taps, float* to, std::size_t plane, std::size_t row);
  /// The patches that a run of tiles reads; `map` is the block's first pixel. What lies outside of
  /// the map is zero.
  void (*transform_patches)(const float* map, const TileRun&, float* to, std::size_t plane);
  void (*multiply)(const Product&);
  /// Outputs of a run of tiles.
  void (*finish_tiles)(const float* from, std::size_t plane, const TileRun&, const Finish&,
                       float* map);
  /// The maxima of windows of 2 x 2 outputs; the run's map has even extents, `to` half of them.
  /// `winners` as max_pool() writes them; null: none.
  void (*pool_tiles)(const float* from, std::size_t plane, const TileRun&, const Finish&, float* to,
                     std::uint8_t* winners);

  /// Gradients of the outputs of a run of tiles; adds them to `bias_sum` (b).
  void (*transform_gradients)(const float* map, const TileRun&, float* to, std::size_t plane,
                              float* bias_sum);
  void (*add_outer)(const OuterSum&);
  /// The opposite of transform_kernel, for gradients.
  void (*finish_kernel)(const float* from, std::size_t plane, std::size_t row, float* taps);
};

/// The CPU must have it.
const Kernels& kernels_for(InstructionSet);

// One file each, compiled for its instruction set.
const Kernels& avx512_kernels();
const Kernels& avx2_kernels();
const Kernels& plain_kernels();

}  // namespace cputrain::cpu::winograd
