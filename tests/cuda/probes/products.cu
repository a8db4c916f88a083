// What tensor cores compute each second by mma.sync, from registers: E17.
#include <algorithm>

#include "backends/cuda/device/tensor_core.h"
#include "cuda/probes/groups.h"
#include "cuda/probes/probe.h"

namespace cputrain::cuda::probes {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kBlocksEach = 2, kQuarters = 4;
constexpr int kRows = 4, kColumns = 4;  // instructions of a warp that do not wait for each other

enum class Kind { tf32, bf16, sparse_bf16 };

constexpr double multiply_adds_of(Kind kind) {  // of an instruction; sparse: as if it were dense
  return 16.0 * 8.0 * (kind == Kind::tf32 ? 8 : kind == Kind::bf16 ? 16 : 32);
}

/// Of each block: cycles and nanoseconds between its first and its last instruction.
struct Stopwatch {
  long long cycles;
  unsigned long long nanoseconds;
};

/// acc += a * b where two of four numbers along the depth of 32 are there in `a`, always the first
/// two: what `kFirstTwo` says.
template <int kM, int kN>
__device__ __forceinline__ void mma_sparse_bf16(float (&acc)[kM][kN][4], const unsigned (&a)[kM][4],
                                                const unsigned (&b)[kN][2],
                                                const unsigned (&more_b)[kN][2]) {
  constexpr unsigned kFirstTwo = 0x44444444u;
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int j = 0; j < kN; ++j) {
// CUDA 12.5 brought the form whose metadata are ordered, the only quick one on Hopper.
#if CUDART_VERSION >= 12050
      asm volatile(
          "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 "
#else
      asm volatile(
          "mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 "
#endif
          "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9,%10,%11},{%0,%1,%2,%3},%12,0x0;"
          : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
          : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]),
            "r"(more_b[j][0]), "r"(more_b[j][1]), "r"(kFirstTwo));
    }
  }
}

/// Numbers between 1/2 and 1 of either sign with random bits, two of bf16 or one of TF32 and some
/// of its lower bits; or zeros.
__device__ unsigned operand(unsigned seed, unsigned i) {
  if (seed == 0) return 0;
  unsigned x = seed * (threadIdx.x + 977 * i + 1);
  x = (x ^ x >> 15) * 2246822519u;
  x ^= x >> 13;
  return (x & 0x807f807fu) | 0x3f003f00u;
}

template <Kind kKind>
__global__ void __launch_bounds__(kThreads)
    products_kernel(int rounds, unsigned seed, float* out, Stopwatch* times) {
  float acc[kRows][kColumns][4] = {};
  unsigned a[kRows][4], b[kColumns][2], more_b[kColumns][2];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) a[i][k] = operand(seed, 4 * i + k);
  }
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
#pragma unroll
    for (unsigned k = 0; k < 2; ++k) {
      b[j][k] = operand(seed, 100 + 2 * j + k);
      more_b[j][k] = operand(seed, 200 + 2 * j + k);
    }
  }
  const long long cycles = clock64();
  const unsigned long long start = nanoseconds();
  for (int round = 0; round < rounds; ++round) {
    if constexpr (kKind == Kind::tf32) {
      mma_tf32(acc, a, b);
    } else if constexpr (kKind == Kind::bf16) {
      mma_bf16(acc, a, b);
    } else {
      mma_sparse_bf16(acc, a, b, more_b);
    }
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      sum += acc[i][j][0] + acc[i][j][1] + acc[i][j][2] + acc[i][j][3];
    }
  }
  out[blockIdx.x * kThreads + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) times[blockIdx.x] = {clock64() - cycles, nanoseconds() - start};
}

struct Rate {
  double multiply_adds = 0;  ///< each second
  double cycles = 0;         ///< of an instruction and quarter of a multiprocessor
  double megahertz = 0;
};

class Bench {
 public:
  /// `times` launches of `rounds` each.
  template <Kind kKind>
  Rate rate(unsigned seed, int rounds, int times) {
    const double seconds = seconds_each(stream_, times, [&] {
      products_kernel<kKind>
          <<<blocks_, kThreads, 0, stream_>>>(rounds, seed, out_.data(), watches_.data());
    });
    const double instructions = double(kRows) * kColumns * rounds;
    Rate rate;
    rate.multiply_adds = multiply_adds_of(kKind) * instructions * kWarps * blocks_ / seconds;
    std::vector<double> cycles, megahertz;
    for (const Stopwatch& w : watches_.read()) {
      cycles.push_back(static_cast<double>(w.cycles));
      megahertz.push_back(1e3 * static_cast<double>(w.cycles) / double(w.nanoseconds));
    }
    rate.cycles = median(cycles) / (instructions * kWarps * kBlocksEach / kQuarters);
    rate.megahertz = median(megahertz);
    return rate;
  }

 private:
  static double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  }

  unsigned blocks_ = kBlocksEach * multiprocessors();
  TestStream stream_;
  TestArray<float> out_{std::size_t{blocks_} * kThreads};
  TestArray<Stopwatch> watches_{blocks_};
};

constexpr unsigned kRandom = 2654435761u, kZeros = 0;
constexpr int kRounds = 20000, kTimes = 5;
constexpr double kCyclesAssumed = 6.35;  // of dense instructions on Hopper

Answer answer_of(const std::string& name, const Rate& rate) {
  return {.name = name,
          .question = "E17",
          .value = 2e-12 * rate.multiply_adds,
          .unit = "TFLOP/s",
          .text = words("%.1f TFLOP/s, %.3f each multiprocessor; %.2f cycles an instruction and "
                        "quarter of one, at %.0f MHz",
                        2e-12 * rate.multiply_adds, 2e-12 * rate.multiply_adds / multiprocessors(),
                        rate.cycles, rate.megahertz)};
}

/// On random numbers and on zeros, which take less power.
template <Kind kKind>
Rate ask_rate(Bench& bench, const std::string& name, std::optional<double> cycles_assumed) {
  const Rate rate = bench.rate<kKind>(kRandom, kRounds, kTimes);
  Answer answer = answer_of(name, rate);
  answer.verdict = verdict_of(rate.cycles, cycles_assumed, 0.1);
  say(answer);
  const Rate zeros = bench.rate<kKind>(kZeros, kRounds, kTimes);
  Answer of_zeros = answer_of(name + "-of-zeros", zeros);
  of_zeros.text +=
      words("; %.2f times the rate of random numbers", zeros.multiply_adds / rate.multiply_adds);
  say(of_zeros);
  return rate;
}

}  // namespace

void ask_products() {
  Bench bench;
  const std::optional<double> cycles = assumed_on_hopper(kCyclesAssumed);
  ask_rate<Kind::tf32>(bench, "mma-tf32", cycles);
  const Rate dense = ask_rate<Kind::bf16>(bench, "mma-bf16", cycles);
  const Rate sparse = ask_rate<Kind::sparse_bf16>(bench, "mma-sparse-bf16", {});
  const double gain = sparse.multiply_adds / dense.multiply_adds;
  say({.name = "mma-sparse-gain",
       .question = "E17",
       .value = gain,
       .unit = "times",
       .text =
           words("sparse products count %.2f times the dense ones (1.4 would be worth it)", gain)});
  const Rate hot = bench.rate<Kind::bf16>(kRandom, kRounds, 200);
  say(answer_of("mma-bf16-for-a-second", hot));
  say({.name = "clock-under-load",
       .question = "E17",
       .value = hot.megahertz,
       .unit = "MHz",
       .verdict = verdict_of(hot.megahertz, assumed_on_hopper(1700), 0.05),
       .text = words("after a second of products multiprocessors run at %.0f MHz", hot.megahertz)});
}

}  // namespace cputrain::cuda::probes
