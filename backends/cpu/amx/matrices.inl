#pragma once

// Products of matrices, for dense layers. Included by kernels.inl.
#include "backends/cpu/amx/vectors.inl"

namespace cputrain::cpu::amx {
namespace {

[[gnu::always_inline]] inline void number(const Matrix& m, int row, int column, Float& to) {
  to = row < m.rows && column < m.columns ? load(m.data + size(row) * m.row + size(column))
                                          : Float{};
}

/// A tile's 16 rows of 32 columns from there.
[[gnu::always_inline]] inline void write_rows(const Matrix& m, int row, int column, Bf16* to) {
  for (int i = 0; i < 16; ++i, to += kRowFactors) {
    Float first, second;
    number(m, row + i, column, first);
    number(m, row + i, column + kBlock, second);
    store_factors(first, second, to);
  }
}

/// A tile's 32 rows of 16 columns, two rows in one.
[[gnu::always_inline]] inline void write_pairs(const Matrix& m, int row, int column, Bf16* to) {
  for (int i = 0; i < 32; i += 2, to += kRowFactors) {
    Float low, high;
    number(m, row + i, column, low);
    number(m, row + i + 1, column, high);
    Word words;
    to_pairs(low, high, words);
    store(to, words);
  }
}

inline void turn_tile(Bf16* tile) {
  Word words[16];
  for (int i = 0; i < 16; ++i)
    words[i] = *reinterpret_cast<const WordThere*>(tile + size(i) * kRowFactors);
  transpose(words);
  for (int i = 0; i < 16; ++i) store(tile + size(i) * kRowFactors, words[i]);
}

void pack_matrix(const Matrix& m, TileForm form, Bf16* to) {
  const bool by_rows = form == TileForm::rows || form == TileForm::pairs_of_rows;
  const bool turned = form == TileForm::columns || form == TileForm::pairs_of_rows;
  const int across = by_rows ? m.rows : m.columns, along = by_rows ? m.columns : m.rows;
  for (int pair = 0; pair < across; pair += 2 * kBlock) {
    for (int step = 0; step < along; step += 2 * kBlock) {
      for (int block = pair; block < pair + 2 * kBlock; block += kBlock, to += kFactors) {
        if (by_rows) {
          write_rows(m, block, step, to);
        } else {
          write_pairs(m, step, block, to);
        }
        if (turned) turn_tile(to);
      }
    }
  }
}

/// Sums of 16 x 16 numbers to where row `row` and column `column` of the product lie.
inline void write_sums(const TileProduct& p, const float* sums, int row, int column) {
  Word words[16];
  for (int i = 0; i < 16; ++i) words[i] = reinterpret_cast<Word>(load(sums + i * kBlock));
  if (p.transposed) transpose(words);
  const int first = p.transposed ? column : row;
  const int count = (p.transposed ? p.columns : p.rows) - first;
  float* to = p.to + size(first) * p.row + size(p.transposed ? row : column);
  for (int i = 0; i < 16 && i < count; ++i, to += p.row) {
    Float value = reinterpret_cast<Float>(words[i]);
    if (p.adds) value += load(to);
    store(to, value);
  }
}

template <class Tiles>
void multiply(const TileProduct& p) {
  alignas(64) float sums[4 * kSums];
  Tiles tiles;
  for (int column = 0; column < p.columns; column += 2 * kBlock) {
    for (int row = 0; row < p.rows; row += 2 * kBlock) {
      const Bf16* const a = p.a + size(row / kBlock * p.steps) * kFactors;
      const Bf16* const b = p.b + size(column / kBlock * p.steps) * kFactors;
      zero_sums(tiles);
      add_products(
          tiles, size(p.steps), kFactors,
          [&](std::size_t i) {
            const std::size_t at = 2 * i * kFactors;
            return Step{{a + at, a + at + kFactors}, b + at};
          },
          [](std::size_t) {});
      store_sums(tiles, sums);
      for (int tile = 0; tile < 4; ++tile) {
        const int y = row + tile / 2 * kBlock, x = column + tile % 2 * kBlock;
        if (y < p.rows && x < p.columns) write_sums(p, sums + size(tile) * kSums, y, x);
      }
    }
  }
}

}  // namespace
}  // namespace cputrain::cpu::amx
