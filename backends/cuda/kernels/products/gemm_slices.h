#pragma once

#include <cstdint>

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/numbers.h"

/// Sums of what blocks have summed each in a part of its own, always in the same order.
namespace cputrain::cuda {

/// The epilogue (gemm_epilogue.h) values[row][column] = sum + bias[column] + added[row][column].
template <class N>
struct BiasAndAdd {
  using Numbers = N;

  typename N::Stored* values = nullptr;
  const float* bias = nullptr;                ///< null: none
  const typename N::Stored* added = nullptr;  ///< null: nothing; may be `values`
};

/// Where sums go. Where they are cut into slices (split-K), those lie in `partials` as floats, one
/// behind the other, and the epilogue comes when they are added.
template <class Epilogue>
struct GemmResult {
  Epilogue epilogue;
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

/// The epilogue of the sums over all slices' result.partials[slice][i], in an order that their
/// number fixes. The result has rows of `columns`.
template <class Epilogue>
void add_slices(Stream, const GemmResult<Epilogue>& result, int slices, std::int64_t columns);

}  // namespace cputrain::cuda
