#include "backends/cpu/kernels/factored_sum.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/kernels/parallel.h"

namespace cputrain::cpu {
namespace {

/// One image's part of a row of the product: value * diff_y.
struct Term {
  float value;
  const float* diff_y;
};

// W: floats in a register; kTile registers of columns at a time.
template <int W, int kTile>
[[gnu::always_inline]] inline void add_columns(std::span<const Term> terms, std::size_t column,
                                               float* sum) {
  using Vector = typename Lanes<W>::AnyFloat;
  typename Lanes<W>::Float total[kTile];
  for (int t = 0; t < kTile; ++t) total[t] = *reinterpret_cast<const Vector*>(sum + t * W);
  for (const Term& term : terms) {
    const float* diff_y = term.diff_y + column;
    for (int t = 0; t < kTile; ++t) {
      total[t] += term.value * *reinterpret_cast<const Vector*>(diff_y + t * W);
    }
  }
  for (int t = 0; t < kTile; ++t) *reinterpret_cast<Vector*>(sum + t * W) = total[t];
}

/// sum[i] += the terms' column `column + i`, for n columns, a multiple of kFactoredColumns.
template <int W>
[[gnu::always_inline]] inline void add_terms(std::span<const Term> terms, std::size_t column,
                                             std::size_t n, float* sum) {
  constexpr int kTile = 8, kLeast = kFactoredColumns / W;
  std::size_t done = 0;
  for (; done + kTile * W <= n; done += kTile * W) {
    add_columns<W, kTile>(terms, column + done, sum + done);
  }
  for (; done < n; done += kFactoredColumns) {
    add_columns<W, kLeast>(terms, column + done, sum + done);
  }
}

using AddTerms = void (*)(std::span<const Term>, std::size_t, std::size_t, float*);

CPUTRAIN_AVX512 void add_terms_512(std::span<const Term> terms, std::size_t column, std::size_t n,
                                   float* sum) {
  add_terms<16>(terms, column, n, sum);
}
CPUTRAIN_AVX2 void add_terms_256(std::span<const Term> terms, std::size_t column, std::size_t n,
                                 float* sum) {
  add_terms<8>(terms, column, n, sum);
}
void add_terms_plain(std::span<const Term> terms, std::size_t column, std::size_t n, float* sum) {
  add_terms<4>(terms, column, n, sum);
}

AddTerms add_terms_for(InstructionSet set) {
  if (set == InstructionSet::avx512) return add_terms_512;
  return set == InstructionSet::avx2 ? add_terms_256 : add_terms_plain;
}

void find_terms(const compute::Factors& factors, std::span<const Array> chunks, std::size_t row,
                std::vector<Term>& terms) {
  for (const Array& chunk : chunks) {
    const float* x = chunk.as<float>().data();
    const float* diff_y = x + factors.rows * factors.images;
    for (std::size_t image = 0; image < factors.images; ++image) {
      const float value = x[row * factors.images + image];
      if (value != 0) terms.push_back({value, diff_y + image * factors.columns});
    }
  }
}

}  // namespace

void add_products_in_parallel(InstructionSet set, const compute::Factors& factors,
                              std::span<const Array> chunks, Range part, const Array& sum) {
  assert(factors.columns % kFactoredColumns == 0 && part.begin % kFactoredColumns == 0 &&
         part.end % kFactoredColumns == 0);
  if (part.size() == 0) return;
  constexpr std::size_t kRows = 64;    // in a task
  constexpr std::size_t kPanel = 256;  // columns whose diff_y stays in a cache for all these rows
  const AddTerms add = add_terms_for(set);
  const std::size_t columns = factors.columns, first = part.begin / columns,
                    rows = (part.end + columns - 1) / columns - first;
  float* const out = sum.as<float>().data();
  parallel_tasks((rows + kRows - 1) / kRows, [&](std::size_t task, std::size_t) {
    const std::size_t begin_row = task * kRows, count = std::min(kRows, rows - begin_row);
    std::vector<Term> terms;
    std::size_t end_of[kRows + 1]{};  // where each row's terms end
    for (std::size_t r = 0; r < count; ++r) {
      find_terms(factors, chunks, first + begin_row + r, terms);
      end_of[r + 1] = terms.size();
    }
    for (std::size_t panel = 0; panel < columns; panel += kPanel) {
      for (std::size_t r = 0; r < count; ++r) {
        const std::span of_row = std::span(terms).subspan(end_of[r], end_of[r + 1] - end_of[r]);
        const std::size_t at = (first + begin_row + r) * columns;
        const std::size_t begin = std::max(part.begin, at + panel),
                          end = std::min(part.end, at + std::min(columns, panel + kPanel));
        if (begin < end && !of_row.empty()) {
          add(of_row, begin - at, end - begin, out + begin - part.begin);
        }
      }
    }
  });
}

void transpose_for_factors(const compute::Factors& factors, const float* x, std::size_t row_x,
                           std::size_t images, float* transposed) {
  for (std::size_t row = 0; row < factors.rows; ++row) {
    float* to = transposed + row * factors.images;
    for (std::size_t image = 0; image < images; ++image) to[image] = x[image * row_x + row];
    std::fill(to + images, to + factors.images, 0.0f);
  }
}

}  // namespace cputrain::cpu
