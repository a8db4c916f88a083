#pragma once

#include <cstddef>
#include <span>

#include "backends/cuda/kernels/shapes.h"
#include "compute/parameters/parameters.h"
#include "core/casts.h"

namespace cputrain::cuda {

/// How this backend has one parameter in an arena: filled up with zeros, and where its kernels want
/// it. Canonically it is (positions, in, out).
class PaddedFormat final : public compute::ParameterFormat {
 public:
  /// Output channels first, in the order that the implicit GEMM reads: (out, positions, in), both
  /// kinds of channels filled up. A dense layer's positions are those of what it reads.
  static PaddedFormat of_kernel(int positions, int in, int out) {
    const std::size_t each = to_size(padded_channels(in)), columns = to_size(positions) * each;
    return {{1, 0},
            {to_size(positions), each},
            {to_size(in), 1},
            {to_size(out), columns},
            to_size(padded_channels(out)),
            columns};
  }
  /// The same where two positions of a row of `size` share a block of input channels.
  static PaddedFormat of_pairs(int size, int in, int out) {
    const std::size_t row = to_size(pieces(size, kPixelsOfPair) * kChannelBlock),
                      columns = to_size(size) * row;
    return {{to_size(size), row},    {to_size(size), kChannelsOfPixel}, {to_size(in), 1},
            {to_size(out), columns}, to_size(padded_channels(out)),     columns};
  }
  /// A convolution's in groups, as it is: (row, column, channel of the group) are rows of filters,
  /// which are filled up.
  static PaddedFormat of_groups(int rows, int filters) {
    const std::size_t columns = to_size(padded_channels(filters));
    return {{1, 0},        {1, 0}, {to_size(rows), columns}, {to_size(filters), 1},
            to_size(rows), columns};
  }
  static PaddedFormat of_vector(int size) { return of_groups(1, size); }

  std::size_t stored() const override { return rows_ * columns_; }
  /// Elements of an output channel, or of a row.
  std::size_t columns() const override { return columns_; }
  void to_canonical(std::span<const float> stored, std::span<float> canonical) const override;
  void from_canonical(std::span<const float> canonical, std::span<float> stored) const override;

 private:
  struct Axis {
    std::size_t count, pitch;  ///< numbers along it, and how far apart they are stored
  };
  PaddedFormat(Axis high, Axis wide, Axis in, Axis out, std::size_t rows, std::size_t columns)
      : high_(high), wide_(wide), in_(in), out_(out), rows_(rows), columns_(columns) {}
  template <class Visit>
  void visit(const Visit& both) const;

  Axis high_, wide_;  ///< positions, of which those of a row may have pitches of their own
  Axis in_, out_;
  std::size_t rows_, columns_;
};

}  // namespace cputrain::cuda
