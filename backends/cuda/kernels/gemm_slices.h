#pragma once

#include "backends/cuda/device/device.h"

/// Sums of what blocks have summed each in a part of its own, always in the same order.
namespace cputrain::cuda {

/// Where sums go: values[row][column] = sum + bias[column] (null: none), added to what is there
/// where `add` says so. Slice s begins s * `slice` numbers further on.
struct GemmResult {
  float* values = nullptr;
  const float* bias = nullptr;
  bool add = false;
  std::size_t slice = 0;
};

/// Threads that share the sum of so many slices, each having some eight: a power of two.
constexpr int lines_of_sum(int slices) {
  constexpr int kMost = 32, kSlicesOfThread = 8;
  int lines = 1;
  while (lines < kMost && lines * kSlicesOfThread < slices) lines *= 2;
  return lines;
}

/// result.values[i] = the sum of all slices' partials[slice][i], in an order that their number
/// fixes, then bias and what was there, as `result` says. result.slice is the number of values, in
/// rows of `columns`.
void add_slices(Stream, const GemmResult& result, const float* partials, int slices, int columns);

/// sums[part][column] of a matrix whose rows are cut into parts of the same size, or one less.
void sum_columns(Stream, const float* matrix, std::size_t rows, int columns, int parts,
                 float* sums);

}  // namespace cputrain::cuda
