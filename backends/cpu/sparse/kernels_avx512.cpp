#include <immintrin.h>

#include "backends/cpu/kernels/lanes.h"

namespace {

struct Isa {
  static constexpr int kBlock = 16;
  using Float = cputrain::cpu::Lanes<kBlock>::Float;
  using Int = cputrain::cpu::Lanes<kBlock>::Int;

  /// One instruction, where lanes.h takes ten; masked, because GCC 12 warns of what it is without
  /// (its bug 105593).
  static Int load_bytes(const std::uint8_t* from) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return reinterpret_cast<Int>(_mm512_maskz_cvtepu8_epi32(0xffff, bytes));
  }
  static unsigned not_zero(Float values) {
    return _mm512_cmp_ps_mask(floats(values), _mm512_setzero_ps(), _CMP_NEQ_UQ);
  }
  static unsigned positive(Float values) {
    return _mm512_cmp_ps_mask(floats(values), _mm512_setzero_ps(), _CMP_GT_OQ);
  }
  static unsigned equal(Int values, int number) {
    return _mm512_cmpeq_epi32_mask(ints(values), _mm512_set1_epi32(number));
  }
  static Float add_where(unsigned set, Float sums, Float values) {
    return reinterpret_cast<Float>(_mm512_mask_add_ps(floats(sums), static_cast<__mmask16>(set),
                                                      floats(sums), floats(values)));
  }
  /// Through a register: compressing into memory takes Zen 4 a hundred cycles.
  static void compress(unsigned set, Float values, Int offsets, float* to_values,
                       unsigned* to_offsets) {
    const auto mask = static_cast<__mmask16>(set);
    _mm512_storeu_ps(to_values, _mm512_maskz_compress_ps(mask, floats(values)));
    _mm512_storeu_si512(to_offsets, _mm512_maskz_compress_epi32(mask, ints(offsets)));
  }

 private:
  static __m512 floats(Float values) { return reinterpret_cast<__m512>(values); }
  static __m512i ints(Int values) { return reinterpret_cast<__m512i>(values); }
};

}  // namespace

#include "backends/cpu/sparse/kernels.inl"

namespace cputrain::cpu::sparse {

const Kernels& avx512_kernels() { return kKernels; }

}  // namespace cputrain::cpu::sparse
