#include "datasets/pixels/convolve_kernels.h"

#include <algorithm>
#include <vector>

#include "core/casts.h"

// Other compilers have no such pragma, and vectorise the plain loops by themselves.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CPUTRAIN_CONVOLVE_WIDE 1
#include <immintrin.h>
#else
#define CPUTRAIN_CONVOLVE_WIDE 0
#endif

namespace cputrain::datasets {
namespace {

constexpr std::int32_t kHalfByte = 1 << (FilterTaps::kBits - 1);

namespace plain {

struct Sums {
  Sums() { std::fill_n(sums, kLanes, kHalfByte); }
  void add(std::int32_t weight, const std::uint8_t* bytes) {
    for (std::size_t i = 0; i < kLanes; ++i) sums[i] += weight * bytes[i];
  }
  void store(std::uint8_t* bytes) const {
    for (std::size_t i = 0; i < kLanes; ++i) {
      bytes[i] = static_cast<std::uint8_t>(std::clamp(sums[i] >> FilterTaps::kBits, 0, 255));
    }
  }
  std::int32_t sums[kLanes];
};

#include "datasets/pixels/convolve_loops.inl"

}  // namespace plain

#if CPUTRAIN_CONVOLVE_WIDE

// GCC's own header leaves a register open on purpose (its bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace avx2 {

struct Sums {
  Sums() : low(_mm256_set1_epi32(kHalfByte)), high(low) {}
  void add(std::int32_t weight, const std::uint8_t* bytes) {
    const __m256i w = _mm256_set1_epi32(weight);
    low = _mm256_add_epi32(low, _mm256_mullo_epi32(w, widened(bytes)));
    high = _mm256_add_epi32(high, _mm256_mullo_epi32(w, widened(bytes + kLanes / 2)));
  }
  void store(std::uint8_t* bytes) const {
    const __m256i words = _mm256_permute4x64_epi64(  // packed within halves: 0 2 1 3
        _mm256_packs_epi32(_mm256_srai_epi32(low, FilterTaps::kBits),
                           _mm256_srai_epi32(high, FilterTaps::kBits)),
        0xD8);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(bytes),
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
  static __m256i widened(const std::uint8_t* bytes) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
  }
  __m256i low, high;
};

#include "datasets/pixels/convolve_loops.inl"

}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace avx512 {

struct Sums {
  Sums() : sums(_mm512_set1_epi32(kHalfByte)) {}
  void add(std::int32_t weight, const std::uint8_t* bytes) {
    const __m512i wide =
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
    sums = _mm512_add_epi32(sums, _mm512_mullo_epi32(_mm512_set1_epi32(weight), wide));
  }
  void store(std::uint8_t* bytes) const {
    const __m512i rounded = _mm512_srai_epi32(sums, FilterTaps::kBits);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes),
                     _mm512_cvtusepi32_epi8(_mm512_max_epi32(rounded, _mm512_setzero_si512())));
  }
  __m512i sums;
};

#include "datasets/pixels/convolve_loops.inl"

}  // namespace avx512
#pragma GCC pop_options
#pragma GCC diagnostic pop

#endif

std::vector<ConvolveKernels> kernels_of_machine() {
  std::vector<ConvolveKernels> kernels;
#if CPUTRAIN_CONVOLVE_WIDE
  if (__builtin_cpu_supports("x86-64-v4"))
    kernels.push_back({"AVX-512", avx512::convolve_tile, avx512::convolve_rows});
  if (__builtin_cpu_supports("x86-64-v3"))
    kernels.push_back({"AVX2", avx2::convolve_tile, avx2::convolve_rows});
#endif
  kernels.push_back({"plain", plain::convolve_tile, plain::convolve_rows});
  return kernels;
}

}  // namespace

std::span<const ConvolveKernels> convolve_kernels() {
  static const std::vector<ConvolveKernels> kernels = kernels_of_machine();
  return kernels;
}

}  // namespace cputrain::datasets
