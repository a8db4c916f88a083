#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/sparse/kernels.h"
#include "compute/executor/memory_plan.h"
#include "model/layer.h"

namespace cputrain::cpu {

/// A 3 x 3 convolution of stride 1 with what is behind it: a 2 x 2 max pool and a ReLU, or one of
/// them, or nothing.
struct SparseShape {
  compute::SampleLayout src, wide, dst;  ///< wide: of the convolution's output; dst: of the block's
  model::PadAmount rows, columns;
  bool pool, relu;
};

/// Computes it at a cost that is proportional to the numbers that are not zero, exactly: README.md
/// beside this file. Kernels lie as oneDNN's OIhw16i16o (or OIhw8i8o).
class SparseConvolution {
 public:
  static bool possible(const SparseShape&);
  SparseConvolution(const SparseShape& shape, int threads)
      : SparseConvolution(shape, threads, sparse::kernels_for(best_instruction_set())) {}
  SparseConvolution(const SparseShape&, int threads, const sparse::Kernels&);

  /// Memory for forward and backward_data, and for backward_weights, 64-byte aligned.
  std::size_t scatter_bytes() const;
  std::size_t gather_bytes() const;

  /// `winners` as max_pool() writes them; null where no backward pass will follow. Returns the part
  /// of src that is not zero.
  double forward(int images, const float* src, const float* weights, const float* bias, float* dst,
                 std::uint8_t* winners, std::byte* scratch) const;

  /// What the backward passes read: gradients of dst, dst itself and the winners of its pool.
  struct Outputs {
    const float* diff;
    const float* dst;
    const std::uint8_t* winners;
  };
  /// `turned`: the kernel as turn_kernel() makes it. Writes all of diff_src, or adds to it. Returns
  /// the part of the convolution's output that has a gradient.
  double backward_data(int images, const Outputs&, const float* turned, float* diff_src, bool adds,
                       std::byte* scratch) const;
  /// The kernel of the convolution that leads back: in and out exchanged, taps in reverse.
  void turn_kernel(const float* weights, float* turned) const;

  /// `bias` may be null.
  void backward_weights(int images, const float* src, const Outputs&, float* diff_weights,
                        float* diff_bias, bool adds, std::byte* scratch) const;

 private:
  struct Scatter;
  struct Gather;
  Scatter scatter_over(const compute::SampleLayout& in, const compute::SampleLayout& out, int rows,
                       int tiles) const;
  Scatter forward_scatter() const;
  Scatter backward_scatter() const;
  Gather gather_plan() const;

  SparseShape shape_;
  int threads_;
  const sparse::Kernels& kernels_;
};

}  // namespace cputrain::cpu
