#pragma once

#include <cstdint>

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/numbers.h"

/// Sums of what blocks have summed each in a part of its own, always in the same order.
namespace cputrain::cuda {

/// Where sums go: values[row][column] = sum + bias[column] (null: none), added to what is there
/// with `add`. Where they are cut into slices, those lie in `partials` as floats, one behind the
/// other, and are added later.
template <class N>
struct GemmResult {
  typename N::Stored* values = nullptr;
  const float* bias = nullptr;
  bool add = false;
  float* partials = nullptr;
  std::int64_t numbers = 0;  ///< in the result, and in a slice
};

/// Threads that share the sum of so many slices, each having some eight: a power of two.
constexpr int lines_of_sum(int slices) {
  constexpr int kMost = 32, kSlicesOfThread = 8;
  int lines = 1;
  while (lines < kMost && lines * kSlicesOfThread < slices) lines *= 2;
  return lines;
}

/// result.values[i] = the sum of all slices' result.partials[slice][i], in an order that their
/// number fixes, then `result`'s bias and, with `add`, what was there. Values are rows of
/// `columns`.
template <class N>
void add_slices(Stream, const GemmResult<N>& result, int slices, std::int64_t columns);

}  // namespace cputrain::cuda
