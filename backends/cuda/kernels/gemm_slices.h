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

/// result.values[i] = partials[0][i] + partials[1][i] + ..., then bias and what was there, as
/// `result` says. result.slice is the number of values, in rows of `columns`.
void add_slices(Stream, const GemmResult& result, const float* partials, int slices, int columns);

/// sums[part][column] of a matrix whose rows are cut into parts of the same size, or one less.
void sum_columns(Stream, const float* matrix, std::size_t rows, int columns, int parts,
                 float* sums);

}  // namespace cputrain::cuda
