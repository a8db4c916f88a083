#pragma once

#include <algorithm>
#include <cstddef>

#include "backends/cpu/sparse/kernels.h"
#include "core/casts.h"

namespace cputrain::cpu::sparse {

/// Blocks of channels whose weights for one block of outputs fill three quarters of the first-level
/// cache; the order of additions depends on it.
int fitting_blocks(int block);

/// Rows of tiles of one image, all blocks of channels of what is read and of what is written.
/// Channels are taken in chunks whose weights (for one block of outputs) stay in the first-level
/// cache; sums over earlier chunks are carried along.
struct ScatterPlan {
  const Kernels& kernels;
  int rows, tiles;            ///< rows of tiles, and tiles in a row
  int in_blocks, out_blocks;  ///< blocks of channels
  int chunk;                  ///< blocks of channels at a time

  ScatterPlan(const Kernels&, int rows, int tiles, int in_blocks, int out_blocks);
  std::size_t bytes() const;  ///< scratch of one thread

  /// Runs rows [first, last) of tiles. `list(row, first block, blocks, lists)` lists the entries of
  /// a row; `finish(row, out block, sums)` takes a row of sums to where they belong. The row before
  /// the first leaves its sums in it, so it is computed, too. Returns the number of entries.
  template <class List, class Finish>
  std::size_t run(int first, int last, const float* weights, std::byte* scratch, const List& list,
                  const Finish& finish) const {
    Memory memory = clear(scratch);
    std::size_t entries = 0;
    for (int row = std::max(0, first - 1); row < last; ++row) {
      for (int begin = 0; begin < in_blocks; begin += chunk) {
        const int blocks = std::min(chunk, in_blocks - begin);
        memory.lists.size = 0;
        list(row, begin, blocks, memory.lists);
        if (row >= first) entries += memory.lists.size;
        for (int out = 0; out < out_blocks; ++out) {
          const ScatterRow sums = sums_of(memory, weights, begin, out);
          if (begin + blocks < in_blocks) {
            kernels.scatter_and_carry(sums, carry(memory, out));
          } else if (row < first) {
            leave(sums);
          } else {
            finish(row, out, sums);
          }
        }
      }
    }
    return entries;
  }

  /// Computes a row only for the sums that it leaves to the next.
  void leave(const ScatterRow& sums) const {
    kernels.scatter_and_store(sums, {{nullptr, nullptr}, 0, 0, nullptr, false, false});
  }

 private:
  struct Memory {
    TileLists lists;
    float *partial, *carry;
  };
  int chunks() const { return (in_blocks + chunk - 1) / chunk; }
  std::size_t most_entries() const;
  std::size_t partial_size() const;
  std::size_t carry_size() const;
  Memory clear(std::byte* scratch) const;
  float* carry(const Memory& memory, int out) const {
    return memory.carry + to_size(out) * carry_size();
  }
  ScatterRow sums_of(const Memory&, const float* weights, int begin, int out) const;
};

}  // namespace cputrain::cpu::sparse
