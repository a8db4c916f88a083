// What tensor cores compute each second by mma.sync, from registers: E17.
#include "cuda/probes/groups.h"
#include "cuda/probes/tiles.h"

namespace cputrain::cuda::probes {
namespace {

enum class Kind { tf32, bf16, sparse_bf16 };

constexpr double multiply_adds_of(Kind kind) {  // of an instruction; sparse: as if it were dense
  return 16.0 * 8.0 * (kind == Kind::tf32 ? 8 : kind == Kind::bf16 ? 16 : 32);
}

/// Which registers an instruction takes after its neighbour. Those of `a` that stay are not read
/// again, nor those of `b`.
enum class Operands {
  rows,        ///< a new `b` each time and a new `a` for each row of a tile, as in the kernels
  serpentine,  ///< the same, every other row from its end, so that its first `b` is the last one's
  same,        ///< always the same
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

/// mma_bf16 in an order of its own.
template <Operands kOperands>
__device__ __forceinline__ void mma_in_order(float (&acc)[kRows][kColumns][4], const Factors& f) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      const int j = kOperands == Operands::serpentine && i % 2 ? kColumns - 1 - k : k;
      const bool same = kOperands == Operands::same;
      mma_bf16_once(acc[i][j], f.a[same ? 0 : i], f.b[same ? 0 : j]);
    }
  }
}

template <Kind kKind, Operands kOperands>
__global__ void __launch_bounds__(kThreads)
    products_kernel(int rounds, unsigned seed, float* out, Stopwatch* times) {
  float acc[kRows][kColumns][4] = {};
  const Factors f(seed);
  const Stopwatch start = Stopwatch::now();
  for (int round = 0; round < rounds; ++round) {
    if constexpr (kKind == Kind::tf32) {
      mma_tf32(acc, f.a, f.b);
    } else if constexpr (kKind == Kind::bf16) {
      mma_in_order<kOperands>(acc, f);
    } else {
      mma_sparse_bf16(acc, f.a, f.b, f.more_b);
    }
  }
  out[blockIdx.x * kThreads + threadIdx.x] = sum_of(acc);
  __syncthreads();
  if (threadIdx.x == 0) times[blockIdx.x] = Stopwatch::now() - start;
}

struct Rate {
  double multiply_adds = 0;  ///< each second
  double cycles = 0;         ///< of an instruction and quarter of a multiprocessor
  double megahertz = 0;      ///< of the last launch

  double multiply_adds_a_clock(Kind kind) const {
    return multiply_adds_of(kind) * kQuarters * multiprocessors() / cycles;
  }
};

class Bench {
 public:
  /// `times` launches of `rounds` each.
  template <Kind kKind, Operands kOperands = Operands::rows>
  Rate rate(unsigned seed, int rounds, int times) {
    const double seconds = seconds_each(stream_, times, [&] {
      products_kernel<kKind, kOperands>
          <<<blocks_, kThreads, 0, stream_>>>(rounds, seed, out_.data(), watches_.data());
    });
    const double instructions = double(kRows) * kColumns * rounds;
    const Pace pace = pace_of(watches_.read());
    return {.multiply_adds = multiply_adds_of(kKind) * instructions * kWarps * blocks_ / seconds,
            .cycles = cycles_each(pace.cycles, instructions),
            .megahertz = pace.megahertz};
  }

 private:
  unsigned blocks_ = kBlocksEach * multiprocessors();
  TestStream stream_;
  TestArray<float> out_{std::size_t{blocks_} * kThreads};
  TestArray<Stopwatch> watches_{blocks_};
};

constexpr unsigned kRandom = 2654435761u, kZeros = 0;
constexpr int kRounds = 20000, kTimes = 5;
constexpr double kCyclesAssumed = 6;  // of dense instructions on Hopper
constexpr double kClockAssumed = 1700;

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
  answer.verdict = verdict_of(rate.cycles, cycles_assumed, 0.03);
  say(answer);
  const Rate zeros = bench.rate<kKind>(kZeros, kRounds, kTimes);
  Answer of_zeros = answer_of(name + "-of-zeros", zeros);
  of_zeros.text +=
      words("; %.2f times the rate of random numbers", zeros.multiply_adds / rate.multiply_adds);
  say(of_zeros);
  return rate;
}

/// Products take so much power that the clock falls.
void ask_clock(Bench& bench) {
  const Rate hot = bench.rate<Kind::bf16>(kRandom, kRounds, 200);
  say(answer_of("mma-bf16-for-a-second", hot));
  const double mean = hot.multiply_adds / hot.multiply_adds_a_clock(Kind::bf16);
  say({.name = "clock-under-load",
       .question = "E17",
       .value = 1e-6 * mean,
       .unit = "MHz",
       .verdict = verdict_of(1e-6 * mean, assumed_on_hopper(kClockAssumed), 0.07),
       .text =
           words("%.0f MHz in a second of products, %.0f at its end", 1e-6 * mean, hot.megahertz)});
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
  say(answer_of("mma-bf16-serpentine",
                bench.rate<Kind::bf16, Operands::serpentine>(kRandom, kRounds, kTimes)));
  say(answer_of("mma-bf16-of-the-same",
                bench.rate<Kind::bf16, Operands::same>(kRandom, kRounds, kTimes)));
  ask_clock(bench);
}

}  // namespace cputrain::cuda::probes
