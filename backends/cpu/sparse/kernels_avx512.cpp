#include <immintrin.h>

#include "backends/cpu/lanes.h"

namespace {

/// GCC folds the vector mask into one of the mask registers that compressing wants.
struct Isa {
  static constexpr int kBlock = 16;
  using Float = cputrain::Lanes<kBlock>::Float;
  using Int = cputrain::Lanes<kBlock>::Int;

  static unsigned bits(Int keep) { return _mm512_movepi32_mask(reinterpret_cast<__m512i>(keep)); }
  static int compress(Int keep, Float values, Int offsets, float* to_values, unsigned* to_offsets) {
    const auto mask = static_cast<__mmask16>(bits(keep));
    _mm512_storeu_ps(to_values, _mm512_maskz_compress_ps(mask, reinterpret_cast<__m512>(values)));
    _mm512_storeu_si512(to_offsets,
                        _mm512_maskz_compress_epi32(mask, reinterpret_cast<__m512i>(offsets)));
    return __builtin_popcount(mask);
  }
};

}  // namespace

#include "backends/cpu/sparse/kernels.inl"

namespace cputrain::sparse {

const Kernels& avx512_kernels() { return kKernels; }

}  // namespace cputrain::sparse
