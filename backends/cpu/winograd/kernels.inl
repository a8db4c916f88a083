// The loops of kernels.h, included by one file for each instruction set, which defines `Isa`:
//   kBlock    channels in a block
//   kRows     tiles of which multiply() keeps two vectors of sums each in registers
//   kColumns  input channels of which add_outer() does; a divisor of kBlock
// Everything is in an unnamed namespace, so that no code for one instruction set is linked into
// another's; for the same reason nothing of the standard library is called.
#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/winograd/kernels.h"
#include "core/casts.h"

namespace cputrain::cpu::winograd {
namespace {

constexpr int kBlock = Isa::kBlock;
using Float = Lanes<kBlock>::Float;

inline Float load(const float* from) {
  return *reinterpret_cast<const Lanes<kBlock>::AnyFloat*>(from);
}
inline void store(float* to, Float values) {
  *reinterpret_cast<Lanes<kBlock>::AnyFloat*>(to) = values;
}

// ---- transforms ----

// F(4x4, 3x3) of Lavin and Gray (arXiv 1509.09308), whose names the matrices have. Polynomials are
// evaluated at 0, a, -a, b, -b and infinity. Errors are smaller than with the usual a = 1 and b =
// 2, because powers stay near 1. Values at a point and at its opposite differ in the sign of the
// odd powers, so even and odd powers are summed once for both.
constexpr float kA = 0.625f, kB = 1.5f;
constexpr float kAA = kA * kA, kBB = kB * kB;

/// Numbers of a patch; the matrix B^T.
inline void evaluate_patch(const Float (&d)[6], Float (&t)[6]) {
  t[0] = d[4] - (kAA + kBB) * d[2] + kAA * kBB * d[0];
  t[5] = d[5] - (kAA + kBB) * d[3] + kAA * kBB * d[1];
  const Float even_a = d[4] - kBB * d[2], odd_a = d[3] - kBB * d[1];
  const Float even_b = d[4] - kAA * d[2], odd_b = d[3] - kAA * d[1];
  t[1] = even_a + kA * odd_a;
  t[2] = even_a - kA * odd_a;
  t[3] = even_b + kB * odd_b;
  t[4] = even_b - kB * odd_b;
}

/// Products at the points; the matrix A^T.
inline void interpolate(const Float (&m)[6], Float (&y)[4]) {
  const Float even_a = m[1] + m[2], odd_a = m[1] - m[2];
  const Float even_b = m[3] + m[4], odd_b = m[3] - m[4];
  y[0] = m[0] + even_a + even_b;
  y[1] = kA * odd_a + kB * odd_b;
  y[2] = kAA * even_a + kBB * even_b;
  y[3] = kA * kAA * odd_a + kB * kBB * odd_b + m[5];
}

/// Gradients of outputs; the matrix A.
inline void spread(const Float (&y)[4], Float (&t)[6]) {
  t[0] = y[0];
  t[5] = y[3];
  const Float even_a = y[0] + kAA * y[2], odd_a = y[1] + kAA * y[3];
  const Float even_b = y[0] + kBB * y[2], odd_b = y[1] + kBB * y[3];
  t[1] = even_a + kA * odd_a;
  t[2] = even_a - kA * odd_a;
  t[3] = even_b + kB * odd_b;
  t[4] = even_b - kB * odd_b;
}

constexpr float kAtZero = 1 / (kAA * kBB);
constexpr float kAtA = 1 / (2 * kAA * (kAA - kBB)), kAtB = 1 / (2 * kBB * (kBB - kAA));

/// Taps; the matrix G.
inline void evaluate_taps(const Float (&g)[3], Float (&t)[6]) {
  t[0] = kAtZero * g[0];
  t[5] = g[2];
  const Float even_a = kAtA * g[0] + kAtA * kAA * g[2], odd_a = kAtA * kA * g[1];
  const Float even_b = kAtB * g[0] + kAtB * kBB * g[2], odd_b = kAtB * kB * g[1];
  t[1] = even_a + odd_a;
  t[2] = even_a - odd_a;
  t[3] = even_b + odd_b;
  t[4] = even_b - odd_b;
}

/// Its transpose.
inline void gather_taps(const Float (&t)[6], Float (&g)[3]) {
  const Float even_a = t[1] + t[2], odd_a = t[1] - t[2];
  const Float even_b = t[3] + t[4], odd_b = t[3] - t[4];
  g[0] = kAtZero * t[0] + kAtA * even_a + kAtB * even_b;
  g[1] = kAtA * kA * odd_a + kAtB * kB * odd_b;
  g[2] = kAtA * kAA * even_a + kAtB * kBB * even_b + t[5];
}

/// Applies a transform to the columns of a square, then to the rows of what comes out.
template <auto transform, int kFrom, int kTo, class Load, class Store>
[[gnu::always_inline]] inline void both_ways(const Load& load_at, const Store& store_at) {
  Float half[kTo][kFrom];
  for (int j = 0; j < kFrom; ++j) {
    Float from[kFrom], to[kTo];
#pragma GCC unroll 6
    for (int i = 0; i < kFrom; ++i) from[i] = load_at(i, j);
    transform(from, to);
#pragma GCC unroll 6
    for (int i = 0; i < kTo; ++i) half[i][j] = to[i];
  }
  for (int i = 0; i < kTo; ++i) {
    Float to[kTo];
    transform(half[i], to);
#pragma GCC unroll 6
    for (int j = 0; j < kTo; ++j) store_at(i, j, to[j]);
  }
}

void transform_kernel(const float* taps, float* to, std::size_t plane, std::size_t row) {
  for (int in = 0; in < kBlock; ++in) {
    both_ways<evaluate_taps, 3, 6>(
        [&](int i, int j) __attribute__((always_inline)) {
          return load(taps + ((3 * i + j) * kBlock + in) * kBlock);
        },
        [&](int i, int j, Float value) __attribute__((always_inline)) {
          store(to + to_size(6 * i + j) * plane + to_size(in) * row, value);
        });
  }
}

void finish_kernel(const float* from, std::size_t plane, std::size_t row, float* taps) {
  for (int in = 0; in < kBlock; ++in) {
    both_ways<gather_taps, 6, 3>(
        [&](int i, int j) __attribute__((always_inline)) {
          return load(from + to_size(6 * i + j) * plane + to_size(in) * row);
        },
        [&](int i, int j, Float value) __attribute__((always_inline)) {
          store(taps + ((3 * i + j) * kBlock + in) * kBlock, value);
        });
  }
}

/// Pixels of a tile, which are read in the map or, where it crosses the edge, in a copy with zeros
/// around it.
template <int kSize>
struct Window {
  const float* first;
  std::ptrdiff_t row;
  Float copy[kSize][kSize];

  [[gnu::always_inline]] Window(const float* map, const TileRun& run, int x) {
    const bool inside =
        run.y >= 0 && x >= 0 && run.y + kSize <= run.height && x + kSize <= run.width;
    if (inside) {
      first = map + (std::ptrdiff_t{run.y} * run.width + x) * kBlock;
      row = std::ptrdiff_t{run.width} * kBlock;
      return;
    }
    for (int i = 0; i < kSize; ++i) {
      for (int j = 0; j < kSize; ++j) {
        const int v = run.y + i, u = x + j;
        const bool there = v >= 0 && v < run.height && u >= 0 && u < run.width;
        copy[i][j] = there ? load(map + (std::ptrdiff_t{v} * run.width + u) * kBlock) : Float{};
      }
    }
    first = reinterpret_cast<const float*>(copy);
    row = kSize * kBlock;
  }
  [[gnu::always_inline]] Float at(int i, int j) const { return load(first + i * row + j * kBlock); }
};

void transform_patches(const float* map, const TileRun& run, float* to, std::size_t plane) {
  for (int tile = 0; tile < run.count; ++tile, to += kBlock) {
    const Window<kPatch> patch(map, run, run.x + tile * kTile);
    both_ways<evaluate_patch, 6, 6>(
        [&](int i, int j) __attribute__((always_inline)) { return patch.at(i, j); },
        [&](int i, int j, Float value)
            __attribute__((always_inline)) { store(to + to_size(6 * i + j) * plane, value); });
  }
}

void transform_gradients(const float* map, const TileRun& run, float* to, std::size_t plane,
                         float* bias_sum) {
  Float sum{};
  for (int tile = 0; tile < run.count; ++tile, to += kBlock) {
    const Window<kTile> outputs(map, run, run.x + tile * kTile);
    both_ways<spread, 4, 6>(
        [&](int i, int j) __attribute__((always_inline)) {
          const Float value = outputs.at(i, j);
          sum += value;
          return value;
        },
        [&](int i, int j, Float value)
            __attribute__((always_inline)) { store(to + to_size(6 * i + j) * plane, value); });
  }
  store(bias_sum, load(bias_sum) + sum);
}

/// Tiles at the lower and right edges have outputs outside of the map, which are not stored.
void finish_tiles(const float* from, std::size_t plane, const TileRun& run, const Finish& finish,
                  float* map) {
  const Float bias = finish.bias ? load(finish.bias) : Float{};
  const int rows = run.height - run.y < kTile ? run.height - run.y : kTile;
  for (int tile = 0; tile < run.count; ++tile, from += kBlock) {
    const int x = run.x + tile * kTile;
    const int columns = run.width - x < kTile ? run.width - x : kTile;
    float* const to = map + (std::ptrdiff_t{run.y} * run.width + x) * kBlock;
    both_ways<interpolate, 6, 4>(
        [&](int i, int j)
            __attribute__((always_inline)) { return load(from + to_size(6 * i + j) * plane); },
        [&](int i, int j, Float value) __attribute__((always_inline)) {
          if (i >= rows || j >= columns) return;
          value += bias;
          if (finish.relu) value = value < 0 ? Float{} : value;
          store(to + (std::ptrdiff_t{i} * run.width + j) * kBlock, value);
        });
  }
}

/// A window of a tile's outputs, its maximum taken before bias and ReLU, which keep the order.
void pool_tiles(const float* from, std::size_t plane, const TileRun& run, const Finish& finish,
                float* to, std::uint8_t* winners) {
  using AnyByte = Lanes<kBlock>::AnyByte;
  const Float bias = finish.bias ? load(finish.bias) : Float{};
  const int height = run.height / 2, width = run.width / 2, y = run.y / 2;
  const int rows = height - y < kTile / 2 ? height - y : kTile / 2;
  for (int tile = 0; tile < run.count; ++tile, from += kBlock) {
    Float outputs[kTile][kTile];
    both_ways<interpolate, 6, 4>(
        [&](int i, int j)
            __attribute__((always_inline)) { return load(from + to_size(6 * i + j) * plane); },
        [&](int i, int j, Float value) __attribute__((always_inline)) { outputs[i][j] = value; });
    const int x = (run.x + tile * kTile) / 2;
    const int columns = width - x < kTile / 2 ? width - x : kTile / 2;
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        const Float window[4] = {outputs[2 * i][2 * j], outputs[2 * i][2 * j + 1],
                                 outputs[2 * i + 1][2 * j], outputs[2 * i + 1][2 * j + 1]};
        Float best;
        Lanes<kBlock>::Int winner;
        find_maximum<kBlock>(window, best, winner);
        best += bias;
        if (finish.relu) best = best < 0 ? Float{} : best;
        const std::ptrdiff_t at = (std::ptrdiff_t{y + i} * width + x + j) * kBlock;
        store(to + at, best);
        if (!winners) continue;
        *reinterpret_cast<AnyByte*>(winners + at) =
            __builtin_convertvector(winner, Lanes<kBlock>::Byte);
      }
    }
  }
}

// ---- products ----

/// The product of kRows tiles, with their sums in registers.
template <int kRows, int kVectors>
void multiply_rows(const Product& p, std::size_t first) {
  Float sums[kRows][kVectors] = {};
  const float* from = p.a + first * kBlock;
  const float* weights = p.b;
  for (int block = 0; block < p.blocks; ++block, from += p.capacity * kBlock) {
    for (int k = 0; k < kBlock; ++k, weights += kVectors * kBlock) {
      Float row[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) row[v] = load(weights + v * kBlock);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Float value = from[r * kBlock + k] - Float{};  // broadcast
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sums[r][v] += value * row[v];
      }
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      store(p.c + (to_size(v) * p.capacity + first + to_size(r)) * kBlock, sums[r][v]);
    }
  }
}

/// Calls the product for `rows` tiles, at most kRows of them.
template <int kRows, int kVectors>
inline void multiply_some(const Product& p, std::size_t first, int rows) {
  if (rows == kRows) {
    multiply_rows<kRows, kVectors>(p, first);
  } else if constexpr (kRows > 1) {
    multiply_some<kRows - 1, kVectors>(p, first, rows);
  }
}

/// In groups of tiles that are as even as possible.
template <int kVectors>
inline void multiply_all(const Product& p) {
  const int groups = (p.tiles + Isa::kRows - 1) / Isa::kRows;
  for (int group = 0, first = 0; group < groups; ++group) {
    const int end = p.tiles * (group + 1) / groups;
    multiply_some<Isa::kRows, kVectors>(p, to_size(first), end - first);
    first = end;
  }
}

void multiply(const Product& p) { p.vectors == 2 ? multiply_all<2>(p) : multiply_all<1>(p); }

/// kColumns rows of the sum by kVectors stay in registers while all tiles pass.
template <int kVectors>
inline void add_outer_vectors(const OuterSum& s) {
  constexpr int kColumns = Isa::kColumns;
  float* to = s.c;
  for (int block = 0; block < s.blocks; ++block) {
    for (int column = 0; column < kBlock; column += kColumns, to += kColumns * kVectors * kBlock) {
      const float* left = s.a + to_size(block) * s.capacity * kBlock + column;
      const float* right = s.b;
      Float sums[kColumns][kVectors];
#pragma GCC unroll 16
      for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          sums[c][v] = s.adds ? load(to + (c * kVectors + v) * kBlock) : Float{};
        }
      }
      for (int tile = 0; tile < s.tiles; ++tile, left += kBlock, right += kBlock) {
        Float row[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) row[v] = load(right + to_size(v) * s.capacity * kBlock);
#pragma GCC unroll 16
        for (int c = 0; c < kColumns; ++c) {
          const Float value = left[c] - Float{};
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) sums[c][v] += value * row[v];
        }
      }
#pragma GCC unroll 16
      for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) store(to + (c * kVectors + v) * kBlock, sums[c][v]);
      }
    }
  }
}

void add_outer(const OuterSum& s) {
  s.vectors == 2 ? add_outer_vectors<2>(s) : add_outer_vectors<1>(s);
}

constexpr Kernels kKernels{kBlock,       transform_kernel, transform_patches,   multiply,
                           finish_tiles, pool_tiles,       transform_gradients, add_outer,
                           finish_kernel};

}  // namespace
}  // namespace cputrain::cpu::winograd
