#pragma once

// Products of matrices, for dense layers. Included by kernels.inl.
#include <immintrin.h>

#include "backends/cpu/amx/vectors.inl"

namespace cputrain::cpu::amx {
namespace {

/// Where the factors of a matrix go.
struct Packing {
  Bf16* to;
  std::size_t steps;

  /// The tile of a block of 16 across the sum, and of 32 along it.
  [[gnu::always_inline]] Bf16* tile(int block, int step) const {
    return to + ((to_size(block / 2) * steps + to_size(step)) * 2 + to_size(block % 2)) * kFactors;
  }
};

/// Zero outside of the matrix.
[[gnu::always_inline]] inline void number(const Matrix& m, int row, int column, Float& to) {
  const bool there = row < m.rows && column < m.columns;
  to = there ? load(m.data + to_size(row) * m.row + to_size(column)) : Float{};
}

/// A row, 32 columns to a tile.
inline void write_row(const Matrix& m, int row, const Packing& packing) {
  for (int step = 0; step * 32 < m.columns; ++step) {
    Float first, second;
    number(m, row, step * 32, first);
    number(m, row, step * 32 + 16, second);
    store_factors(first, second, packing.tile(row / 16, step) + to_size(row % 16) * kRowFactors);
  }
}

/// 32 rows of a block of 16 columns, two rows in one. Fetches what is below, since so many streams
/// are more than processors foresee.
inline void write_pairs(const Matrix& m, int row, int block, const Packing& packing) {
  Bf16* to = packing.tile(block, row / 32);
  for (int i = 0; i < 32; i += 2, to += kRowFactors) {
    Float low, high;
    number(m, row + i, block * 16, low);
    number(m, row + i + 1, block * 16, high);
    const float* const below = m.data + to_size(row + i + 32) * m.row + to_size(block * 16);
    __builtin_prefetch(below);
    __builtin_prefetch(below + m.row);
    Word words;
    to_pairs(low, high, words);
    store(to, words);
  }
}

inline void turn_tile(Bf16* tile) {
  Word words[16];
  for (int i = 0; i < 16; ++i) {
    words[i] = *reinterpret_cast<const WordThere*>(tile + to_size(i) * kRowFactors);
  }
  transpose(words);
  for (int i = 0; i < 16; ++i) store(tile + to_size(i) * kRowFactors, words[i]);
}

/// Goes through the matrix by 32 rows, whose tiles stay in the cache until they are turned.
void pack_matrix(const Matrix& m, TileForm form, Bf16* to) {
  const bool by_rows = form == TileForm::rows || form == TileForm::pairs_of_rows;
  const bool turned = form == TileForm::columns || form == TileForm::pairs_of_rows;
  const Packing packing{to, to_size(((by_rows ? m.columns : m.rows) + 31) / 32)};
  const int bands = (m.rows + 31) / 32, across = (m.columns + 31) / 32;
  for (int band = 0; band < bands; ++band) {
    for (int i = 0; by_rows && i < 32; ++i) write_row(m, band * 32 + i, packing);
    for (int i = 0; !by_rows && i < 2 * across; ++i) write_pairs(m, band * 32, i, packing);
    for (int i = 0; turned && i < across; ++i) {
      turn_tile(by_rows ? packing.tile(2 * band, i) : packing.tile(2 * i, band));
      turn_tile(by_rows ? packing.tile(2 * band + 1, i) : packing.tile(2 * i + 1, band));
    }
  }
}

/// To a cache line, past the caches where there is an instruction for all of it.
[[gnu::always_inline]] inline void stream(float* to, const Float& value) {
#ifdef __AVX512F__
  _mm512_stream_ps(to, reinterpret_cast<__m512>(value));
#else
  store(to, value);
#endif
}

/// Sums of 16 x 16 numbers to where row `row` and column `column` of the product lie.
inline void write_sums(const TileProduct& p, const float* sums, int row, int column) {
  Word words[16];
  for (int i = 0; i < 16; ++i) words[i] = reinterpret_cast<Word>(load(sums + i * kBlock));
  if (p.transposed) transpose(words);
  const bool streams = p.past_caches && !p.adds;
  const int first = p.transposed ? column : row;
  const int count = (p.transposed ? p.columns : p.rows) - first;
  float* to = p.to + to_size(first) * p.row + to_size(p.transposed ? row : column);
  for (int i = 0; i < 16 && i < count; ++i, to += p.row) {
    Float value = reinterpret_cast<Float>(words[i]);
    if (p.adds) value += load(to);
    streams ? stream(to, value) : store(to, value);
  }
}

template <class Tiles>
void multiply(const TileProduct& p) {
  alignas(64) float sums[4 * kSums];
  Tiles tiles;
  for (int column = 0; column < p.columns; column += 2 * kBlock) {
    for (int row = 0; row < p.rows; row += 2 * kBlock) {
      const Bf16* const a = p.a + to_size(row / kBlock * p.steps) * kFactors;
      const Bf16* const b = p.b + to_size(column / kBlock * p.steps) * kFactors;
      zero_sums(tiles);
      add_products(
          tiles, to_size(p.steps), kFactors,
          [&](std::size_t i) {
            const std::size_t at = 2 * i * kFactors;
            return Step{{a + at, a + at + kFactors}, b + at};
          },
          [](std::size_t) {});
      store_sums(tiles, sums);
      for (int tile = 0; tile < 4; ++tile) {
        const int y = row + tile / 2 * kBlock, x = column + tile % 2 * kBlock;
        if (y < p.rows && x < p.columns) write_sums(p, sums + to_size(tile) * kSums, y, x);
      }
    }
  }
  if (p.past_caches) _mm_sfence();
}

}  // namespace
}  // namespace cputrain::cpu::amx
