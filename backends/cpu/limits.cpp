#include "backends/cpu/limits.h"

#include <immintrin.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/cpu/amx/availability.h"
#include "backends/cpu/huge_memory.h"
#include "backends/cpu/kernels/clones.h"
#include "backends/cpu/kernels/instruction_set.h"
#include "backends/cpu/kernels/parallel.h"
#include "core/casts.h"
#include "system/clock.h"

namespace cputrain::cpu {
namespace {

// Sixteen independent sums hide the latency of any core known (4 to 5 cycles, two a cycle).
constexpr int kSums = 16;
constexpr std::int64_t kRounds = 1'000'000;

// Attributes of the instruction set do not reach into lambdas or templates, so each set has its own
// plain loop; the empty asm keeps the compiler from folding it, and unrolling the sums in
// registers. They return a number that depends on all sums, so that none is dropped.
[[gnu::target("avx512f")]] float multiply_add_512(std::int64_t rounds) {
  __m512 sums[kSums];
#pragma GCC unroll 16
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 factor = _mm512_set1_ps(0.999f), term = _mm512_set1_ps(1e-3f);
  for (std::int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) {
      sums[i] = _mm512_fmadd_ps(sums[i], factor, term);
      asm volatile("" : "+v"(sums[i]));
    }
  }
  __m512 total = sums[0];
#pragma GCC unroll 16
  for (int i = 1; i < kSums; ++i) total = _mm512_add_ps(total, sums[i]);
  return _mm512_cvtss_f32(total);
}

[[gnu::target("avx2,fma")]] float multiply_add_256(std::int64_t rounds) {
  constexpr int kRegisters = 12;  // 16 less two for the factor and the term, and two spare
  __m256 sums[kRegisters];
#pragma GCC unroll 12
  for (int i = 0; i < kRegisters; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 factor = _mm256_set1_ps(0.999f), term = _mm256_set1_ps(1e-3f);
  for (std::int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kRegisters; ++i) {
      sums[i] = _mm256_fmadd_ps(sums[i], factor, term);
      asm volatile("" : "+x"(sums[i]));
    }
  }
  __m256 total = sums[0];
#pragma GCC unroll 12
  for (int i = 1; i < kRegisters; ++i) total = _mm256_add_ps(total, sums[i]);
  return _mm256_cvtss_f32(total);
}

float multiply_add_128(std::int64_t rounds) {
  constexpr int kRegisters = 12;
  __m128 sums[kRegisters];
#pragma GCC unroll 12
  for (int i = 0; i < kRegisters; ++i) sums[i] = _mm_set1_ps(static_cast<float>(i));
  const __m128 factor = _mm_set1_ps(0.999f), term = _mm_set1_ps(1e-3f);
  for (std::int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kRegisters; ++i) {
      sums[i] = _mm_add_ps(_mm_mul_ps(sums[i], factor), term);
      asm volatile("" : "+x"(sums[i]));
    }
  }
  __m128 total = sums[0];
#pragma GCC unroll 12
  for (int i = 1; i < kRegisters; ++i) total = _mm_add_ps(total, sums[i]);
  return _mm_cvtss_f32(total);
}

struct Kernel {
  float (*run)(std::int64_t rounds);
  double flops;  ///< per round
};

Kernel widest_kernel() {
  if (supports(InstructionSet::avx512)) return {multiply_add_512, 16.0 * 16 * 2};
  if (supports(InstructionSet::avx2)) return {multiply_add_256, 12.0 * 8 * 2};
  return {multiply_add_128, 12.0 * 4 * 2};
}

double measure_fma(int threads, const compute::Together& together) {
  const Kernel kernel = widest_kernel();
  double best = 0;
  volatile float sink = 0;
  for (int repeat = 0; repeat < 8; ++repeat) {
    together.meet();
    const system::Stopwatch watch;
    on_each_thread([&](int) {
      const float total = kernel.run(kRounds);
      if (total == 0) sink = total;
    });
    const double seconds = together.slowest(watch.seconds());
    best = std::max(best, to_double(kRounds) * kernel.flops * threads / seconds);
  }
  return best / 1e9;
}

CPUTRAIN_CLONES
void triad(double* __restrict a, const double* __restrict b, const double* __restrict c,
           std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) a[i] = b[i] + 3.0 * c[i];
}

double measure_triad(const compute::Together& together) {
  constexpr std::size_t kLeast = 64 << 20,
                        kMost = 256 << 20;  // bytes of one array of all processes
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::size_t all = std::clamp(4 * to_size(std::max(cache, 0L)), kLeast, kMost);
  const std::size_t bytes = all / to_size(together.processes) / 64 * 64;
  const std::size_t n = bytes / sizeof(double);
  const auto memory = allocate_huge(3 * bytes);
  auto* a = reinterpret_cast<double*>(memory->bytes().data());
  double *b = a + n, *c = b + n;
  parallel_ranges(n, [&](std::size_t begin, std::size_t end) {  // first touch, as it will be used
    std::fill(a + begin, a + end, 0.0);
    std::fill(b + begin, b + end, 1.0);
    std::fill(c + begin, c + end, 2.0);
  });
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    together.meet();
    const system::Stopwatch watch;
    parallel_ranges(n, [&](std::size_t begin, std::size_t end) {
      triad(a + begin, b + begin, c + begin, end - begin);
    });
    const double seconds = together.slowest(watch.seconds());
    best = std::max(best, 3.0 * to_double(bytes) / seconds);
  }
  return best / 1e9;
}

/// Steps of tiles whose factors fill half of a first-level cache of 32 KB and more.
constexpr int kTileSteps = 4;
constexpr std::size_t kTileFactors = 2 * kTileSteps * amx::kFactors;

/// Factors of magnitudes from 2^-7 on, for two octaves.
void draw_factors(bool zeros, std::uint32_t seed, amx::Bf16* to) {
  for (std::size_t i = 0; i < kTileFactors; ++i) {
    seed = seed * 1664525 + 1013904223;
    const std::uint32_t sign = seed >> 16 & 0x8000, rest = seed >> 8 & 0xff;
    to[i] = zeros && sign ? amx::Bf16{0} : static_cast<amx::Bf16>(sign | (0x3c00 + rest));
  }
}

}  // namespace

double measure_tiles(const amx::Kernels& kernels, int threads, const compute::Together& together,
                     int rounds) {
  struct alignas(64) Operands {
    amx::Bf16 a[kTileFactors], b[kTileFactors];
    float sums[4 * amx::kSums];
  };
  const ThreadCount scope(threads);
  std::vector<Operands> operands(to_size(threads));
  for (Operands& own : operands) {
    draw_factors(true, 1, own.a);
    draw_factors(false, 2, own.b);
  }
  constexpr double kFlops = 4.0 * kTileSteps * 2 * 16 * 16 * 32;  // a round's
  double best = 0;
  for (int repeat = 0; repeat < 4; ++repeat) {
    together.meet();
    const system::Stopwatch watch;
    on_each_thread([&](int thread) {
      Operands& own = operands[to_size(thread)];
      kernels.multiply_often(own.a, own.b, kTileSteps, rounds, own.sums);
    });
    const double seconds = together.slowest(watch.seconds());
    best = std::max(best, rounds * kFlops * threads / seconds);
  }
  return best / 1e9;
}

compute::Limits measure_machine(int threads, const compute::Together& together) {
  constexpr int kTileRounds = 500'000;  // some 60 ms
  const ThreadCount scope(threads);
  const amx::Kernels* const tiles = amx::find_kernels(KernelChoice::Tiles::hardware);
  return {.fma_gflops = measure_fma(threads, together),
          .triad_gbs = measure_triad(together),
          .tiles_gflops = tiles ? measure_tiles(*tiles, threads, together, kTileRounds) : 0};
}

}  // namespace cputrain::cpu
