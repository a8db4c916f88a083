#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

/// Products of a matrix with a few columns. Matrices M are row by row; factors P (rows x rank) and
/// Q (columns x rank) column by column. Plain loops, the same bits on every rank.
namespace cputrain::exchange {

/// In partial sums, so that the loop is vectorised.
template <class T>
T dot(const T* a, const T* b, std::size_t n) {
  constexpr std::size_t kLanes = 16;
  T sums[kLanes]{};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  T sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const T part : sums) sum += part;
  return sum;
}

/// y += factor * x.
template <class T>
void add_scaled(T* __restrict y, T factor, const T* __restrict x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

template <class T>
void scale(T* x, T factor, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] *= factor;
}

/// Columns are a whole number of panels, each of which holds `panel` columns of M row by row.
struct LowRankShape {
  std::size_t rows, columns, panel, rank;

  std::size_t size() const { return rows * columns; }
  std::size_t p_size() const { return rows * rank; }
  std::size_t q_size() const { return columns * rank; }
  /// For each panel, row and factor: work(element of P, where the row's part begins in M, in Q).
  template <class Work>
  void for_parts(Work work) const {
    for (std::size_t first = 0; first < columns; first += panel) {
      for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t in_m = first * rows + i * panel;
        for (std::size_t k = 0; k < rank; ++k) work(i + k * rows, in_m, first + k * columns);
      }
    }
  }
};

/// P = M Q.
template <class T>
void multiply(const T* m, const T* q, T* p, const LowRankShape& shape) {
  std::fill_n(p, shape.p_size(), T{0});
  shape.for_parts([&](std::size_t in_p, std::size_t in_m, std::size_t in_q) {
    p[in_p] += dot(m + in_m, q + in_q, shape.panel);
  });
}

/// Q = M^T P.
template <class T>
void multiply_transposed(const T* m, const T* p, T* q, const LowRankShape& shape) {
  std::fill_n(q, shape.q_size(), T{0});
  shape.for_parts([&](std::size_t in_p, std::size_t in_m, std::size_t in_q) {
    add_scaled(q + in_q, p[in_p], m + in_m, shape.panel);
  });
}

/// M += sign P Q^T.
template <class T>
void add_product(T* m, T sign, const T* p, const T* q, const LowRankShape& shape) {
  shape.for_parts([&](std::size_t in_p, std::size_t in_m, std::size_t in_q) {
    add_scaled(m + in_m, sign * p[in_p], q + in_q, shape.panel);
  });
}

/// Makes the columns orthonormal by the modified Gram-Schmidt process, twice over each ("twice is
/// enough"). A column that depends on those before it becomes zero: its direction would be that of
/// rounding errors. NaN spreads.
template <class T>
void orthonormalise(T* p, std::size_t rows, std::size_t rank) {
  constexpr T kNothing = 100 * std::numeric_limits<T>::epsilon();
  for (std::size_t k = 0; k < rank; ++k) {
    T* const column = p + k * rows;
    const T before = std::sqrt(dot(column, column, rows));
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t j = 0; j < k; ++j) {
        add_scaled(column, -dot(p + j * rows, column, rows), p + j * rows, rows);
      }
    }
    const T left = std::sqrt(dot(column, column, rows));
    scale(column, left <= kNothing * before ? T{0} : 1 / left, rows);
  }
}

}  // namespace cputrain::exchange
