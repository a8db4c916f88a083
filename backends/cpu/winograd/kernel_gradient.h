#pragma once

#include <cstddef>

#include "backends/cpu/winograd/tiles.h"

namespace cputrain::cpu::winograd {

/// Gradients of the kernel and of the bias. Threads meet after each group of tiles: all transform
/// it, then each adds the products of some points. Sums are in the order of tiles, so they are the
/// same bits for any number of threads.
class KernelGradient {
 public:
  KernelGradient(const Problem& problem, int threads)
      : KernelGradient(problem, threads, best_instruction_set()) {}
  KernelGradient(const Problem&, int threads, InstructionSet);

  std::size_t scratch_bytes() const;
  /// `diff_bias` may be null. `scratch` begins a cache line.
  void run(const float* src, const float* diff_dst, float* diff_weights, float* diff_bias,
           std::byte* scratch) const;

 private:
  struct Memory;
  Memory memory_in(std::byte* scratch) const;
  void transform(std::size_t first, std::size_t last, const float* src, const float* diff_dst,
                 const Memory&) const;
  void transform_chunk(std::size_t first, std::size_t begin, std::size_t end, std::size_t block,
                       const float* src, const float* diff_dst, const Memory&) const;
  void add_products(std::size_t tiles, bool adds, const Memory&) const;
  void add_bias(std::size_t tiles, const Memory&, float* diff_bias) const;
  void finish(const Memory&, float* diff_weights) const;

  Problem problem_;
  const Kernels& kernels_;
  Tiles tiles_;
  std::size_t block_, ins_, outs_;
  std::size_t capacity_;  ///< for the tiles of a group
  std::size_t sums_plane_, patches_plane_, gradients_plane_;
};

}  // namespace cputrain::cpu::winograd
