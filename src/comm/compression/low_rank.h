#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

/// Products of a matrix with a few columns. Matrices M are row by row; factors P (rows x rank) and
/// Q (columns x rank) column by column. Plain loops, the same bits whoever computes them.
namespace cputrain {

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

struct LowRankShape {
  std::size_t rows, columns, rank;
};

/// P = M Q.
template <class T>
void multiply(const T* m, const T* q, T* p, LowRankShape shape) {
  for (std::size_t i = 0; i < shape.rows; ++i) {
    for (std::size_t k = 0; k < shape.rank; ++k) {
      p[k * shape.rows + i] = dot(m + i * shape.columns, q + k * shape.columns, shape.columns);
    }
  }
}

/// Q = M^T P.
template <class T>
void multiply_transposed(const T* m, const T* p, T* q, LowRankShape shape) {
  std::fill(q, q + shape.columns * shape.rank, T{0});
  for (std::size_t i = 0; i < shape.rows; ++i) {
    for (std::size_t k = 0; k < shape.rank; ++k) {
      add_scaled(q + k * shape.columns, p[k * shape.rows + i], m + i * shape.columns,
                 shape.columns);
    }
  }
}

/// M += sign P Q^T.
template <class T>
void add_product(T* m, T sign, const T* p, const T* q, LowRankShape shape) {
  for (std::size_t i = 0; i < shape.rows; ++i) {
    for (std::size_t k = 0; k < shape.rank; ++k) {
      add_scaled(m + i * shape.columns, sign * p[k * shape.rows + i], q + k * shape.columns,
                 shape.columns);
    }
  }
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

}  // namespace cputrain
