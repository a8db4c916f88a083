#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/winograd/tiles.h"

namespace cputrain::cpu::winograd {

/// Forward, or the way back to the source, which is a forward pass from outputs to inputs with the
/// kernel turned round. Kernels lie as oneDNN's OIhw16i16o (or OIhw8i8o). Results are the same bits
/// for any number of threads and images.
class Pass {
 public:
  enum class Way { forward, backward_data };
  Pass(const Problem& problem, Way way, int threads)
      : Pass(problem, way, threads, best_instruction_set()) {}
  Pass(const Problem&, Way, int threads, InstructionSet);

  std::size_t scratch_bytes() const;
  /// `bias` may be null. `scratch` begins a cache line. With a pool `to` is its map, and `winners`
  /// are as max_pool() writes them; null where no backward pass will follow.
  void run(const float* from, const float* weights, const float* bias, bool relu, float* to,
           std::byte* scratch, std::uint8_t* winners = nullptr) const;

 private:
  struct Run;
  void cut(std::size_t threads);
  void transform_kernel(const float* weights, float* transformed) const;
  void transform_patches(const Run&) const;
  void finish_tiles(const Run&, std::size_t out, const float* sums) const;
  void run_tiles(const Run&) const;

  Way way_;
  InstructionSet set_;
  const Kernels& kernels_;
  compute::SampleLayout from_, to_;
  bool pools_;        ///< to_ is the pool's map
  int above_, left_;  ///< padding; backward: 2 less the convolution's
  Tiles tiles_;
  std::size_t block_, ins_, outs_;

  std::size_t threads_;
  std::size_t runs_;      ///< runs of tiles, each on one thread
  std::size_t parts_;     ///< parts of the outputs, each on one thread
  std::size_t sweep_;     ///< blocks of outputs between a point and the next
  std::size_t capacity_;  ///< for the tiles of a run
  std::size_t weights_plane_, patches_plane_, sums_plane_;
};

}  // namespace cputrain::cpu::winograd
