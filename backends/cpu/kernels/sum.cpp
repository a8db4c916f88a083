#include "backends/cpu/kernels/sum.h"

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/cpu/kernels/clones.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/parallel.h"

namespace cputrain::cpu {
namespace {

/// The sources' first elements.
struct Sources {
  const float* const* first;
  std::size_t count;
};

// The common numbers of sources have loops of their own, which read all of them side by side.
CPUTRAIN_CLONES void sum_2(const float* a, const float* b, float* dst, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = a[i] + b[i];
}

CPUTRAIN_CLONES void sum_4(const float* a, const float* b, const float* c, const float* d,
                           float* dst, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = ((a[i] + b[i]) + c[i]) + d[i];
}

CPUTRAIN_CLONES void add_3(const float* a, const float* b, const float* c, float* dst,
                           std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = ((dst[i] + a[i]) + b[i]) + c[i];
}

/// In the order of sources, through a block that stays in the first-level cache.
void sum_block(const Sources& src, std::size_t at, float* block, std::size_t n) {
  const auto in = [&](std::size_t k) { return src.first[k] + at; };
  std::size_t done = 0;
  if (src.count >= 4) {
    sum_4(in(0), in(1), in(2), in(3), block, n);
    done = 4;
  } else if (src.count >= 2) {
    sum_2(in(0), in(1), block, n);
    done = 2;
  } else {
    std::copy_n(in(0), n, block);
    done = 1;
  }
  for (; done + 3 <= src.count; done += 3) add_3(in(done), in(done + 1), in(done + 2), block, n);
  for (; done < src.count; ++done) sum_2(block, in(done), block, n);
}

// Past the cache, which then keeps what is still to be read. A whole cache line at a time where the
// processor can, since one whose parts it does not combine is read first. dst is aligned to 64
// bytes and n a multiple of 16.
[[gnu::target("avx512f")]] void copy_past_cache_512(const float* src, float* dst, std::size_t n) {
  for (std::size_t i = 0; i < n; i += 16) _mm512_stream_ps(dst + i, _mm512_loadu_ps(src + i));
}

[[gnu::target("avx512f")]] void sum_2_past_cache_512(const float* a, const float* b, float* dst,
                                                     std::size_t n) {
  for (std::size_t i = 0; i < n; i += 16) {
    _mm512_stream_ps(dst + i, _mm512_add_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i)));
  }
}

void copy_past_cache_128(const float* src, float* dst, std::size_t n) {
  for (std::size_t i = 0; i < n; i += 4) _mm_stream_ps(dst + i, _mm_loadu_ps(src + i));
}

void sum_2_past_cache_128(const float* a, const float* b, float* dst, std::size_t n) {
  for (std::size_t i = 0; i < n; i += 4) {
    _mm_stream_ps(dst + i, _mm_add_ps(_mm_loadu_ps(a + i), _mm_loadu_ps(b + i)));
  }
}

void copy_past_cache(InstructionSet set, const float* src, float* dst, std::size_t n) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(dst) % 64 == 0;
  const std::size_t lines = aligned ? n / 16 * 16 : 0;
  if (set == InstructionSet::avx512) {
    copy_past_cache_512(src, dst, lines);
  } else {
    copy_past_cache_128(src, dst, lines);
  }
  std::copy_n(src + lines, n - lines, dst + lines);
}

/// Two sources need no block between them and dst, for whose writing reads would wait.
bool sum_2_past_cache(InstructionSet set, const Sources& src, float* dst, std::size_t begin,
                      std::size_t end) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(dst + begin) % 64 == 0;
  if (src.count != 2 || !aligned) return false;
  const std::size_t lines = (end - begin) / 16 * 16;
  const auto sum = set == InstructionSet::avx512 ? sum_2_past_cache_512 : sum_2_past_cache_128;
  sum(src.first[0] + begin, src.first[1] + begin, dst + begin, lines);
  for (std::size_t i = begin + lines; i < end; ++i) dst[i] = src.first[0][i] + src.first[1][i];
  _mm_sfence();
  return true;
}

void sum_range(InstructionSet set, const Sources& src, float* dst, bool past_cache,
               std::size_t begin, std::size_t end) {
  if (past_cache && sum_2_past_cache(set, src, dst, begin, end)) return;
  constexpr std::size_t kBlock = 2048;
  alignas(64) float block[kBlock];
  for (std::size_t at = begin; at < end; at += kBlock) {
    const std::size_t n = std::min(kBlock, end - at);
    sum_block(src, at, block, n);
    if (past_cache) {
      copy_past_cache(set, block, dst + at, n);
    } else {
      std::copy_n(block, n, dst + at);
    }
  }
  if (past_cache) _mm_sfence();
}

}  // namespace

void sum_in_parallel(InstructionSet set, std::span<const Array> src, const Array& dst) {
  std::vector<const float*> first;
  bool in_place = false;
  for (const Array& array : src) {
    first.push_back(array.as<float>().data());
    in_place |= array.data == dst.data;
  }
  if (in_place && src.size() == 1) return;
  const Sources sources{first.data(), first.size()};
  float* const out = dst.as<float>().data();
  const bool past_cache = !in_place && dst.size >= kPastCache;
  parallel_ranges(dst.size, [&](std::size_t begin, std::size_t end) {
    sum_range(set, sources, out, past_cache, begin, end);
  });
}

void add_parts(float* parts, std::size_t count, std::size_t size) {
  constexpr std::size_t kPiece = 1024;  // stays in the first-level cache
  if (count < 2) return;
  parallel_for((size + kPiece - 1) / kPiece, [&](std::size_t piece) {
    float* const sums = parts + piece * kPiece;
    const std::size_t n = std::min(kPiece, size - piece * kPiece);
    for (std::size_t p = 1; p < count; ++p) kernels::add(sums + p * size, sums, n);
  });
}

}  // namespace cputrain::cpu
