#pragma once

#include <algorithm>
#include <bit>

#include "backends/cpu/kernels/alive_rows.h"
#include "backends/cpu/kernels/lanes.h"
#include "core/casts.h"

/// The loops of alive_rows.cpp over one block of rows, to be inlined into functions of one
/// instruction set each.
namespace cputrain::cpu::alive_rows {

#define ALWAYS_INLINE [[gnu::always_inline]] inline

// W: floats in a register.
template <int W>
ALWAYS_INLINE const typename Lanes<W>::AnyFloat& lanes(const float* at) {
  return *reinterpret_cast<const typename Lanes<W>::AnyFloat*>(at);
}
template <int W>
ALWAYS_INLINE typename Lanes<W>::AnyFloat& lanes(float* at) {
  return *reinterpret_cast<typename Lanes<W>::AnyFloat*>(at);
}

/// Calls f(bit) for the bits that are set, in order.
template <class F>
ALWAYS_INLINE void for_bits(std::uint64_t mask, const F& f) {
  for (; mask; mask &= mask - 1) f(to_size(std::countr_zero(mask)));
}

/// What the three products of one block need.
struct Block {
  Sizes sizes;
  const std::uint64_t* masks;  ///< its images'
  const float* x;              ///< its first row, image 0
  std::size_t rows;
};

/// sums (images, out) += x W, `kTile` vectors of columns at a time in registers. `weights`: those
/// columns of the block's first row, `row_size` numbers before the next row's.
template <int W, int kTile>
ALWAYS_INLINE void forward_columns(const Block& b, const float* weights, std::size_t row_size,
                                   float* sums) {
  for (std::size_t image = 0; image < b.sizes.images; ++image) {
    const std::uint64_t mask = b.masks[image];
    if (!mask) continue;
    const float* x = b.x + image * b.sizes.row_x;
    float* sum = sums + image * b.sizes.out;
    typename Lanes<W>::Float sum_of[kTile];
    for (int t = 0; t < kTile; ++t) sum_of[t] = lanes<W>(sum + t * W);
    for_bits(mask, [&](std::size_t row) {
      const float value = x[row];
      const float* w = weights + row * row_size;
      for (int t = 0; t < kTile; ++t) sum_of[t] += value * lanes<W>(w + t * W);
    });
    for (int t = 0; t < kTile; ++t) lanes<W>(sum + t * W) = sum_of[t];
  }
}

/// Where several images want a row, columns are copied first: rows of weights often lie a power of
/// two apart, so that few of them fit the first-level cache at once.
template <int W, int kTile>
ALWAYS_INLINE void forward_block(const Block& b, const float* weights, float* sums) {
  constexpr std::size_t kTileColumns = kTile * W;
  const std::size_t out = b.sizes.out;
  std::uint64_t wanted = 0;
  int alive = 0;
  for (std::size_t image = 0; image < b.sizes.images; ++image) {
    wanted |= b.masks[image];
    alive += std::popcount(b.masks[image]);
  }
  const bool copies = 2 * alive >= 5 * std::popcount(wanted);
  alignas(64) float copy[kRows * kTileColumns];
  std::size_t column = 0;
  for (; column + kTileColumns <= out; column += kTileColumns) {
    if (!copies) {
      forward_columns<W, kTile>(b, weights + column, out, sums + column);
      continue;
    }
    for_bits(wanted, [&](std::size_t row) {
      const float* from = weights + row * out + column;
      float* to = copy + row * kTileColumns;
      for (int t = 0; t < kTile; ++t) lanes<W>(to + t * W) = lanes<W>(from + t * W);
    });
    forward_columns<W, kTile>(b, copy, kTileColumns, sums + column);
  }
  for (; column < out; column += W) {
    forward_columns<W, 1>(b, weights + column, out, sums + column);
  }
}

/// The sum of a vector's numbers, halves upon each other.
template <int W>
ALWAYS_INLINE float sum_of(const typename Lanes<W>::Float& vector) {
  float part[W];
  lanes<W>(part) = vector;
  for (int half = W / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) part[i] += part[i + half];
  }
  return part[0];
}

/// Four rows' products with one image's gradient.
template <int W>
ALWAYS_INLINE void dot_rows(std::size_t out, const float* const (&rows)[4], const float* diff_y,
                            float (&sums)[4]) {
  typename Lanes<W>::Float even[4]{}, odd[4]{};
  std::size_t column = 0;
  for (; column + 2 * W <= out; column += 2 * W) {
    const typename Lanes<W>::Float first = lanes<W>(diff_y + column),
                                   second = lanes<W>(diff_y + column + W);
    for (int i = 0; i < 4; ++i) {
      even[i] += lanes<W>(rows[i] + column) * first;
      odd[i] += lanes<W>(rows[i] + column + W) * second;
    }
  }
  if (column < out) {
    for (int i = 0; i < 4; ++i) even[i] += lanes<W>(rows[i] + column) * lanes<W>(diff_y + column);
  }
  for (int i = 0; i < 4; ++i) sums[i] = sum_of<W>(even[i] + odd[i]);
}

template <int W>
ALWAYS_INLINE void data_block(const Block& b, const float* weights, const float* diff_y, bool add,
                              float* diff_x) {
  for (std::size_t image = 0; image < b.sizes.images; ++image) {
    float* diff = diff_x + image * b.sizes.row_x;
    if (!add) std::fill_n(diff, b.rows, 0.0f);
    std::uint64_t mask = b.masks[image];
    while (mask) {
      // A last group of less than four repeats a row, so that every sum is made the same way.
      std::size_t row[4];
      const float* rows[4];
      int count = 0;
      for (int i = 0; i < 4; ++i) {
        row[i] = mask ? to_size(std::countr_zero(mask)) : row[i - 1];
        rows[i] = weights + row[i] * b.sizes.out;
        count += mask != 0;
        mask &= mask - 1;
      }
      float sums[4];
      dot_rows<W>(b.sizes.out, rows, diff_y + image * b.sizes.out, sums);
      for (int i = 0; i < count; ++i) diff[row[i]] = add ? diff[row[i]] + sums[i] : sums[i];
    }
  }
}

template <int W, int kTile>
ALWAYS_INLINE void weights_columns(const Block& b, std::size_t row, std::uint64_t images,
                                   const float* diff_y, bool add, std::size_t column,
                                   float* diff_row) {
  typename Lanes<W>::Float sum[kTile];
  for (int t = 0; t < kTile; ++t) {
    sum[t] = add ? lanes<W>(diff_row + column + t * W) : typename Lanes<W>::Float{};
  }
  for_bits(images, [&](std::size_t image) {
    const float value = b.x[image * b.sizes.row_x + row];
    const float* diff = diff_y + image * b.sizes.out + column;
    for (int t = 0; t < kTile; ++t) sum[t] += value * lanes<W>(diff + t * W);
  });
  for (int t = 0; t < kTile; ++t) lanes<W>(diff_row + column + t * W) = sum[t];
}

template <int W, int kTile>
ALWAYS_INLINE void weights_block(const Block& b, const float* diff_y, bool add,
                                 float* diff_weights) {
  std::uint64_t images_of[kRows]{};
  for (std::size_t image = 0; image < b.sizes.images; ++image) {
    for_bits(b.masks[image], [&](std::size_t row) { images_of[row] |= std::uint64_t{1} << image; });
  }
  const std::size_t out = b.sizes.out;
  for (std::size_t row = 0; row < b.rows; ++row) {
    float* diff_row = diff_weights + row * out;
    if (!images_of[row]) {
      if (!add) std::fill_n(diff_row, out, 0.0f);
      continue;
    }
    std::size_t column = 0;
    for (; column + kTile * W <= out; column += kTile * W) {
      weights_columns<W, kTile>(b, row, images_of[row], diff_y, add, column, diff_row);
    }
    for (; column < out; column += W) {
      weights_columns<W, 1>(b, row, images_of[row], diff_y, add, column, diff_row);
    }
  }
}

#undef ALWAYS_INLINE

}  // namespace cputrain::cpu::alive_rows
