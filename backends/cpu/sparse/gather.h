#pragma once

#include <cstddef>

#include "backends/cpu/sparse/kernels.h"
#include "compute/executor/memory_plan.h"
#include "core/casts.h"
#include "model/layer.h"

namespace cputrain::cpu::sparse {

/// Those `n` numbers further on.
inline Gradients behind(const Gradients& from, std::size_t n) {
  return {from.diff + n, from.dst ? from.dst + n : nullptr,
          from.winners ? from.winners + n : nullptr};
}

/// A part of an image's work: rows of tiles, and which blocks of outputs gather from them.
struct GatherPart {
  int row, row_end;
  int out, out_end;
};

/// Gradients of a kernel from the outputs that carry one, tile by tile: a tile of the source stays
/// in the caches while all blocks of outputs of a part gather from it.
struct GatherPlan {
  const Kernels& kernels;
  compute::SampleLayout src, dst;
  model::PadAmount rows, columns;
  bool pool;

  /// Sums of a kernel: [in / b][out][tap][b], then of the bias: [out].
  std::size_t sums_size() const;
  std::size_t scratch_bytes() const;  ///< for one thread
  int tile_rows() const;              ///< in an image

  /// Adds what a part of one image contributes. Gradients are of the image.
  void run(const float* image, const Gradients&, const GatherPart&, float* sums,
           std::byte* scratch) const;

  /// Writes the sums to kernel and bias (null: none) as they lie in the arena, or adds them.
  void finish(const float* sums, float* diff_weights, float* diff_bias, bool adds) const;

 private:
  struct Tile;
  static constexpr int kTile = 16;          ///< pixels of the convolution's output, each way
  static constexpr int kPatch = kTile + 2;  ///< pixels of the source that they read, each way
  int in_blocks() const { return to_int(src.blocks()); }
  std::size_t patch_size() const { return to_size(kPatch * kPatch * kernels.block); }
  int windows() const { return pool ? kTile / 2 : kTile; }  ///< in a tile, each way
  Tile tile_at(int row, int column) const;
  void run_tile(const Tile&, const float* image, const Gradients&, int out, float* sums,
                std::byte* scratch) const;
  void list_tile(const Tile&, const Gradients&, ChannelLists&, float* bias_sums) const;
  const float* patch(const Tile&, const float* plane, float* copy) const;
  void finish_block(const float* sums, float* diff_weights, int out, bool adds) const;
};

}  // namespace cputrain::cpu::sparse
