#pragma once

#include <span>

#include "backends/cpu/kernels/instruction_set.h"
#include "compute/factors.h"

namespace cputrain::cpu {

/// AddProducts (compute/factors.h) for floats: rows of the product go through
/// registers once, whatever the number of chunks, and a row whose x is zero in all images is not
/// touched. `factors.columns` and both ends of `part` are multiples of kFactoredColumns. The same
/// bits for any number of threads and however the product is cut into parts.
void add_products_in_parallel(InstructionSet, const compute::Factors& factors,
                              std::span<const Array> chunks, Range part, const Array& sum);

constexpr std::size_t kFactoredColumns = 16;

/// Copies x (images, rows; `row_x` numbers from one image to the next) to x transposed (rows,
/// factors.images), with zeros for the images that are not there.
void transpose_for_factors(const compute::Factors& factors, const float* x, std::size_t row_x,
                           std::size_t images, float* transposed);

}  // namespace cputrain::cpu
