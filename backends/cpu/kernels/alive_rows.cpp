#include "backends/cpu/kernels/alive_rows.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <bit>

#include "backends/cpu/kernels/alive_rows_block.h"
#include "backends/cpu/kernels/parallel.h"
#include "core/casts.h"

namespace cputrain::cpu::alive_rows {
namespace {

std::uint64_t mask_of(const float* x, std::size_t n) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < n; ++i) mask |= static_cast<std::uint64_t>(x[i] != 0) << i;
  return mask;
}

CPUTRAIN_AVX512 std::uint64_t full_mask_512(const float* x) {
  std::uint64_t mask = 0;
  for (int i = 0; i < 4; ++i) {
    const __mmask16 part =
        _mm512_cmp_ps_mask(_mm512_loadu_ps(x + 16 * i), _mm512_setzero_ps(), _CMP_NEQ_UQ);
    mask |= static_cast<std::uint64_t>(part) << (16 * i);
  }
  return mask;
}

CPUTRAIN_AVX2 std::uint64_t full_mask_256(const float* x) {
  std::uint64_t mask = 0;
  for (int i = 0; i < 8; ++i) {
    const __m256 part = _mm256_cmp_ps(_mm256_loadu_ps(x + 8 * i), _mm256_setzero_ps(), _CMP_NEQ_UQ);
    mask |= static_cast<std::uint64_t>(static_cast<unsigned>(_mm256_movemask_ps(part))) << (8 * i);
  }
  return mask;
}

std::uint64_t full_mask(const float* x) { return mask_of(x, kRows); }

// One copy of the loops for each instruction set.
#define CPUTRAIN_COPIES(suffix, target, width)                                                   \
  target void forward_##suffix(const Block& b, const float* weights, float* sums) {              \
    forward_block<width, 8>(b, weights, sums);                                                   \
  }                                                                                              \
  target void data_##suffix(const Block& b, const float* weights, const float* diff_y, bool add, \
                            float* diff_x) {                                                     \
    data_block<width>(b, weights, diff_y, add, diff_x);                                          \
  }                                                                                              \
  target void weights_##suffix(const Block& b, const float* diff_y, bool add,                    \
                               float* diff_weights) {                                            \
    weights_block<width, 8>(b, diff_y, add, diff_weights);                                       \
  }
CPUTRAIN_COPIES(512, CPUTRAIN_AVX512, 16)
CPUTRAIN_COPIES(256, CPUTRAIN_AVX2, 8)
CPUTRAIN_COPIES(plain, , 4)
#undef CPUTRAIN_COPIES

struct Kernels {
  std::uint64_t (*full_mask)(const float*);
  void (*forward)(const Block&, const float*, float*);
  void (*data)(const Block&, const float*, const float*, bool, float*);
  void (*weights)(const Block&, const float*, bool, float*);
};

Kernels kernels_for(InstructionSet set) {
  if (set == InstructionSet::avx512) return {full_mask_512, forward_512, data_512, weights_512};
  if (set == InstructionSet::avx2) return {full_mask_256, forward_256, data_256, weights_256};
  return {full_mask, forward_plain, data_plain, weights_plain};
}

Block block_of(const Sizes& s, const std::uint64_t* masks, const float* x, std::size_t block) {
  const std::size_t first = block * kRows;
  return {s, masks + block * s.images, x + first, std::min(kRows, s.in - first)};
}

}  // namespace

std::size_t find_alive(InstructionSet set, const Sizes& s, const float* x, std::uint64_t* masks) {
  const auto full = kernels_for(set).full_mask;
  std::atomic<std::size_t> alive = 0;
  parallel_for(s.images, [&](std::size_t image) {
    std::size_t of_image = 0;
    for (std::size_t block = 0; block < blocks(s.in); ++block) {
      const float* at = x + image * s.row_x + block * kRows;
      const std::size_t rows = std::min(kRows, s.in - block * kRows);
      const std::uint64_t mask = rows == kRows ? full(at) : mask_of(at, rows);
      masks[block * s.images + image] = mask;
      of_image += to_size(std::popcount(mask));
    }
    alive += of_image;
  });
  return alive;
}

bool may_pay(std::size_t in, std::size_t out) {
  constexpr std::size_t kLeastWeights = 1 << 20;  // less stays in a cache near the core
  return out % kColumns == 0 && in * out >= kLeastWeights;
}

bool forward_pays(std::size_t images, std::size_t in, std::size_t alive) {
  return alive <= 2 * in || 4 * alive <= images * in;
}

bool backward_pays(std::size_t images, std::size_t in, std::size_t alive) {
  return images <= 8 || 2 * alive <= images * in;
}

void forward(InstructionSet set, const Sizes& s, const std::uint64_t* masks, const float* x,
             const float* weights, float* scratch, float* y) {
  const Kernels kernels = kernels_for(set);
  const std::size_t numbers = s.images * s.out, count = blocks(s.in);
  parallel_for(kSlabs, [&](std::size_t slab) {
    float* sums = scratch + slab * numbers;
    std::fill_n(sums, numbers, 0.0f);
    for (std::size_t b = slab * count / kSlabs; b < (slab + 1) * count / kSlabs; ++b) {
      kernels.forward(block_of(s, masks, x, b), weights + b * kRows * s.out, sums);
    }
  });
  for (std::size_t slab = 0; slab < kSlabs; ++slab) {
    const float* sums = scratch + slab * numbers;
    for (std::size_t i = 0; i < numbers; ++i) y[i] += sums[i];
  }
}

void backward_data(InstructionSet set, const Sizes& s, const std::uint64_t* masks,
                   const float* weights, const float* diff_y, bool add, float* diff_x) {
  const Kernels kernels = kernels_for(set);
  parallel_for(blocks(s.in), [&](std::size_t b) {
    kernels.data(block_of(s, masks, diff_x, b), weights + b * kRows * s.out, diff_y, add,
                 diff_x + b * kRows);
  });
}

void backward_weights(InstructionSet set, const Sizes& s, const std::uint64_t* masks,
                      const float* x, const float* diff_y, bool add, float* diff_weights) {
  const Kernels kernels = kernels_for(set);
  parallel_for(blocks(s.in), [&](std::size_t b) {
    kernels.weights(block_of(s, masks, x, b), diff_y, add, diff_weights + b * kRows * s.out);
  });
}

}  // namespace cputrain::cpu::alive_rows
