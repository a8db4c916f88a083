#pragma once

#include <cstddef>

#include "backends/cpu/amx/kernels.h"

namespace cputrain::cpu::amx {

/// The three products of a dense layer in tiles of bf16. Images x (images, in), outputs y (images,
/// out) and weights W (in, out) are floats and lie row by row without gaps; factors are rounded as
/// they are packed, piece by piece, so that no second copy of the weights is kept. The same bits
/// for any number of threads.
class Dense {
 public:
  /// Whether blocks of 16 are full, and weights so many that reading them is what takes the time.
  static bool possible(std::size_t in, std::size_t out);
  /// Tiles hold 16 images, and a product reads all weights whatever it computes: for few images
  /// kernels that leave out dead rows are better.
  static constexpr std::size_t kFewestImages = 16;

  /// `images`: the most at once.
  Dense(std::size_t images, std::size_t in, std::size_t out, int threads, const Kernels&);

  const char* name() const { return kernels_.name; }
  /// Memory for forward, and for either way back, which begins a cache line.
  std::size_t forward_bytes() const;
  std::size_t backward_bytes() const;

  /// y += x W
  void forward(std::size_t images, const float* x, const float* weights, float* y,
               std::byte* scratch) const;
  /// diff_x = diff_y W^T, or added.
  void backward_data(std::size_t images, const float* diff_y, const float* weights, bool adds,
                     float* diff_x, std::byte* scratch) const;
  /// diff_weights = x^T diff_y, or added.
  void backward_weights(std::size_t images, const float* x, const float* diff_y, bool adds,
                        float* diff_weights, std::byte* scratch) const;

 private:
  std::size_t slab_rows() const;

  std::size_t images_, in_, out_, threads_;
  const Kernels& kernels_;
};

}  // namespace cputrain::cpu::amx
