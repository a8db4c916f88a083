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
  static constexpr bool kSums = false;  ///< of columns, too

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

  /// What is left to do when slices are added.
  GemmResult<BiasAndAdd<typename Epilogue::Numbers>> of_slices() const {
    return {epilogue, partials, numbers};
  }
};

/// Threads that share the sum of so many slices, or parts, each having some eight: a power of two.
constexpr int lines_of_sum(int slices, int most = 32) {
  constexpr int kSlicesOfThread = 8;
  int lines = 1;
  while (lines < most && lines * kSlicesOfThread < slices) lines *= 2;
  return lines;
}

/// The epilogue of the sums over all slices' result.partials[slice][i], in an order that their
/// number fixes. The result has rows of `columns`.
template <class Epilogue>
void add_slices(Stream, const GemmResult<Epilogue>& result, int slices, std::int64_t columns);

}  // namespace cputrain::cuda
