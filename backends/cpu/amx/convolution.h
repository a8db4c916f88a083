#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/amx/kernels.h"
#include "compute/executor/sample_layout.h"
#include "model/layer.h"

namespace cputrain::cpu::amx {

/// A 3 x 3 convolution of stride 1 with what is behind it: a 2 x 2 max pool and a ReLU, or one of
/// them, or nothing.
struct ConvolutionShape {
  compute::SampleLayout src, wide, dst;  ///< wide: of the convolution's output; dst: of the block's
  model::PadAmount rows, columns;
  bool pool, relu;
};

/// Computes it in tiles of bf16: README.md beside this file. Factors (maps, gradients, weights) are
/// rounded, sums are floats. Kernels lie as oneDNN's OIhw16i16o. Forward and backward_data have the
/// same bits for any number of threads and images.
class Convolution {
 public:
  /// Whether channels fill blocks of 16 and padding is at most 2.
  static bool possible(const ConvolutionShape&);
  Convolution(const ConvolutionShape&, int threads, const Kernels&);

  const char* name() const { return kernels_.name; }
  /// Memory for forward and backward_data, and for backward_weights, which begins a cache line.
  std::size_t pass_bytes() const;
  std::size_t gradient_bytes() const;

  /// `winners` as max_pool() writes them; null where no backward pass will follow, or no pool is.
  /// `bias` may be null.
  void forward(int images, const float* src, const float* weights, const float* bias, float* dst,
               std::uint8_t* winners, std::byte* scratch) const;

  /// What the backward passes read: gradients of dst, dst itself and the winners of its pool.
  struct Outputs {
    const float* diff;
    const float* dst;
    const std::uint8_t* winners;
  };
  /// Writes all of diff_src, or adds to it.
  void backward_data(int images, const Outputs&, const float* weights, float* diff_src, bool adds,
                     std::byte* scratch) const;
  /// `diff_bias` may be null.
  void backward_weights(int images, const float* src, const Outputs&, float* diff_weights,
                        float* diff_bias, bool adds, std::byte* scratch) const;

 private:
  struct Strips;
  PassShape forward_shape() const;
  PassShape backward_shape() const;
  GradientShape gradient_shape() const;
  std::size_t parts() const;
  MapRows source_rows(const float* src) const;
  MapRows gradient_rows(const Outputs&) const;
  void pack(const PassShape&, const float* weights, bool turned, Bf16* to) const;
  void run(const PassShape&, int images, std::size_t from_image, std::size_t to_image,
           const PassRun& of_first, std::byte* scratch) const;

  ConvolutionShape shape_;
  std::size_t threads_;
  const Kernels& kernels_;
};

}  // namespace cputrain::cpu::amx
