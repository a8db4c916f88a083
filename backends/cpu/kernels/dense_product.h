#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backends/cpu/kernels/alive_rows.h"

namespace cputrain::cpu {

/// The three products of a dense layer, or of those of its inputs that this rank has: own kernels
/// that skip zeros (alive_rows.h) wherever that pays for the numbers at hand, else GEMM.
class DenseProduct {
 public:
  struct Size {
    std::size_t in, out;
    std::size_t images;  ///< the most at once
    std::size_t row_x;   ///< numbers from one image of x, or of its gradient, to the next
  };
  /// `zeros_are_dead`: the gradient of an x that is zero is thrown away before anything learns from
  /// it, since a ReLU made it; so it need not be right.
  DenseProduct(const Size&, bool zeros_are_dead);

  /// Bytes of memory to give to use(): kept from forward to backward; needed in forward.
  std::size_t kept_bytes() const;
  std::size_t forward_bytes() const;
  void use(std::byte* kept, std::byte* for_forward);

  /// y = x W, or (`add`) y += x W.
  void forward(std::size_t images, const float* x, const float* weights, bool add, float* y);
  /// diff_weights = x^T diff_y, or added, for the images of the last forward().
  void backward_weights(std::size_t images, const float* x, const float* diff_y, bool add,
                        float* diff_weights) const;
  /// diff_x = diff_y W^T, or added.
  void backward_data(std::size_t images, const float* diff_y, const float* weights, bool add,
                     float* diff_x) const;

  /// Numbers of the last forward()'s x that are not zero, where they were counted.
  std::optional<std::size_t> alive() const {
    return may_skip_ ? std::optional(alive_) : std::nullopt;
  }

  const char* algorithm() const {
    return may_skip_ ? "skips zeros where it pays, else sgemm" : "sgemm";
  }

 private:
  /// Notes which numbers are not zero.
  void look_for_zeros(std::size_t images, const float* x);
  /// Calls f(first image, sizes, its masks) for as many images at a time as alive_rows takes.
  template <class F>
  void for_groups(std::size_t images, const F& f) const;

  Size size_;
  bool zeros_are_dead_;
  bool may_skip_;  ///< it is large enough
  InstructionSet instruction_set_ = best_instruction_set();
  std::uint64_t* masks_ = nullptr;
  float* sums_ = nullptr;
  std::size_t alive_ = 0;  ///< so many numbers of x are not zero
};

}  // namespace cputrain::cpu
