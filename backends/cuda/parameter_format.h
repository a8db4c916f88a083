#pragma once

#include <cstddef>
#include <span>

#include "backends/cuda/kernels/shapes.h"

namespace cputrain::cuda {

/// How one parameter lies in an arena. A kernel, canonically (positions, in, out), has its output
/// channels first, in the order that the implicit GEMM reads: (out, positions, in), both kinds of
/// channels filled up with zeros. A dense layer's positions are those of the map it reads. A vector
/// lies as it is, filled up.
class ParameterFormat {
 public:
  static ParameterFormat of_kernel(int positions, int in, int out) {
    return {positions, in, out, padded_channels(out)};
  }
  static ParameterFormat of_vector(int size) { return {1, size, 1, 1}; }

  /// Elements that it takes in an arena.
  std::size_t stored() const { return rows_ * row(); }
  /// Elements of an output channel: the columns of the matrix that a kernel is.
  std::size_t row() const {
    return positions_ * static_cast<std::size_t>(padded_channels(static_cast<int>(in_)));
  }
  /// From an arena's elements to canonical ones and back; padding becomes zero.
  void to_canonical(std::span<const float> stored, std::span<float> canonical) const;
  void from_canonical(std::span<const float> canonical, std::span<float> stored) const;

 private:
  ParameterFormat(int positions, int in, int out, int rows)
      : positions_(static_cast<std::size_t>(positions)),
        in_(static_cast<std::size_t>(in)),
        out_(static_cast<std::size_t>(out)),
        rows_(static_cast<std::size_t>(rows)) {}
  template <class Visit>
  void visit(const Visit& both) const;

  std::size_t positions_, in_, out_, rows_;
};

}  // namespace cputrain::cuda
