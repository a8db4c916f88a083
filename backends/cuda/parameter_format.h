#pragma once

#include <cstddef>
#include <span>

#include "backends/cuda/kernels/shapes.h"
#include "compute/parameters/parameters.h"
#include "core/casts.h"

namespace cputrain::cuda {

/// How this backend has one parameter in an arena. A kernel, canonically (positions, in, out), has
/// its output channels first, in the order that the implicit GEMM reads: (out, positions, in), both
/// kinds of channels filled up with zeros. A dense layer's positions are those of what it reads. A
/// vector lies as it is, filled up.
class OutputsFirst final : public compute::ParameterFormat {
 public:
  static OutputsFirst of_kernel(int positions, int in, int out) {
    return {positions, in, out, padded_channels(out)};
  }
  static OutputsFirst of_vector(int size) { return {1, size, 1, 1}; }

  std::size_t stored() const override { return rows_ * columns(); }
  /// Elements of an output channel.
  std::size_t columns() const override {
    return positions_ * to_size(padded_channels(to_int(in_)));
  }
  void to_canonical(std::span<const float> stored, std::span<float> canonical) const override;
  void from_canonical(std::span<const float> canonical, std::span<float> stored) const override;

 private:
  OutputsFirst(int positions, int in, int out, int rows)
      : positions_(to_size(positions)),
        in_(to_size(in)),
        out_(to_size(out)),
        rows_(to_size(rows)) {}
  template <class Visit>
  void visit(const Visit& both) const;

  std::size_t positions_, in_, out_, rows_;
};

/// A kernel of a convolution in groups as it is, (row, column, channel of the group, filter), the
/// filters filled up with zeros.
class FiltersLast final : public compute::ParameterFormat {
 public:
  FiltersLast(int rows, int filters) : rows_(to_size(rows)), filters_(to_size(filters)) {}

  std::size_t stored() const override { return rows_ * columns(); }
  /// Elements of a row.
  std::size_t columns() const override { return to_size(padded_channels(to_int(filters_))); }
  void to_canonical(std::span<const float> stored, std::span<float> canonical) const override;
  void from_canonical(std::span<const float> canonical, std::span<float> stored) const override;

 private:
  std::size_t rows_, filters_;
};

}  // namespace cputrain::cuda
