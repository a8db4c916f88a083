#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "backends/cuda/kernels/products/gemm_plan.h"
#include "backends/cuda/selftest/stored_numbers.h"

/// What loops multiply, on the host, and what a plain loop makes of it.
namespace cputrain::cuda::probes {

/// Numbers of a format in lines, rows of A or columns of B, along the depth.
struct Matrix {
  Numbers numbers = Numbers::bf16;
  std::size_t lines = 0, depth = 0;
  std::vector<float> values{};

  float at(std::size_t line, std::size_t k) const { return values[line * depth + k]; }
  /// As they lie in memory: line by line or, transposed, depth by depth.
  std::vector<std::byte> bytes(bool transposed) const {
    if (!transposed) return stored(numbers, values);
    std::vector<float> by_depth;
    by_depth.reserve(values.size());
    for (std::size_t k = 0; k < depth; ++k) {
      for (std::size_t line = 0; line < lines; ++line) by_depth.push_back(at(line, k));
    }
    return stored(numbers, by_depth);
  }
};

/// From -8 to 8: products and their sums are exact.
inline Matrix integers(Numbers numbers, std::size_t lines, std::size_t depth, unsigned seed) {
  Matrix made{numbers, lines, depth, std::vector<float>(lines * depth)};
  for (float& value : made.values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>((seed >> 16) % 17) - 8;
  }
  return made;
}
/// From -1 to 1.
inline Matrix fractions(Numbers numbers, std::size_t lines, std::size_t depth, unsigned seed) {
  Matrix made{numbers, lines, depth, std::vector<float>(lines * depth)};
  for (float& value : made.values) {
    seed = seed * 1664525 + 1013904223;
    value = rounded(numbers, std::ldexp(static_cast<float>(seed >> 8), -23) - 1);
  }
  return made;
}

/// Sums of a tile, and those of the products' magnitudes.
struct PlainTile {
  std::vector<double> sums, magnitudes;
};

/// Columns of a tile over so many steps. B begins again where it ends, and so do rows of A, which
/// are `depth` long: what meets the same depth of them is added first.
class PlainColumns {
 public:
  PlainColumns(const Matrix& b, std::size_t columns, std::size_t steps, std::size_t depth)
      : columns_(columns), numbers_(depth * columns), magnitudes_(numbers_.size()) {
    const std::size_t all = steps * kStepBytes / stored_bytes(b.numbers);
    for (std::size_t column = 0; column < columns; ++column) {
      std::size_t of_a = 0, of_b = 0;
      for (std::size_t k = 0; k < all; ++k) {
        const double number = static_cast<double>(b.at(column, of_b));
        numbers_[of_a * columns + column] += number;
        magnitudes_[of_a * columns + column] += std::abs(number);
        of_a = of_a + 1 < depth ? of_a + 1 : 0;
        of_b = of_b + 1 < b.depth ? of_b + 1 : 0;
      }
    }
  }

  /// With rows `first` to first + rows - 1.
  PlainTile tile(const Matrix& a, std::size_t first, std::size_t rows) const {
    const std::size_t size = rows * columns_;
    PlainTile made{std::vector<double>(size), std::vector<double>(size)};
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t k = 0; k < a.depth; ++k) {
        const double factor = static_cast<double>(a.at(first + row, k));
        add(&made.sums[row * columns_], factor, &numbers_[k * columns_]);
        add(&made.magnitudes[row * columns_], std::abs(factor), &magnitudes_[k * columns_]);
      }
    }
    return made;
  }

 private:
  void add(double* sums, double factor, const double* numbers) const {
    for (std::size_t column = 0; column < columns_; ++column) {
      sums[column] += factor * numbers[column];
    }
  }

  std::size_t columns_;
  std::vector<double> numbers_, magnitudes_;
};

/// Sums of `got` that are further from the plain ones than tensor cores may be: an instruction cuts
/// off less than 2^-20 of the products' magnitudes. None may where there are no `instructions`.
inline std::size_t wrong_sums(const PlainTile& plain, const float* got, double instructions) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < plain.sums.size(); ++i) {
    const double off = std::abs(static_cast<double>(got[i]) - plain.sums[i]);
    wrong += !(off <= std::ldexp(instructions * plain.magnitudes[i], -20));
  }
  return wrong;
}

}  // namespace cputrain::cuda::probes
