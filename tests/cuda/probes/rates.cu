// How fast tensor cores are, alone and beside other instructions.
#include "cuda/probes/groups.h"
#include "cuda/probes/tiles.h"

namespace cputrain::cuda::probes {
namespace {

// What tensor cores compute each second by mma.sync, from registers: E17.

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
constexpr double kCyclesAssumed = 6;  // of a dense instruction on Hopper
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

namespace {

// How many ordinary instructions find a place beside each mma.sync: E17. The main loops of the
// kernels have between two and fifteen.

constexpr int kChains = 8, kIssueRounds = 4000;

enum class Beside {
  floats,   ///< multiply-adds of floats, of which a quarter may begin one each cycle
  integers  ///< additions and logic of integers, of which some begin every other cycle
};

/// One step of a chain that a compiler cannot shorten. Two instructions where `kBeside` is
/// integers, in words of PTX since a float that C++ takes for an integer may be copied first.
template <Beside kBeside>
__device__ __forceinline__ void step(unsigned& x, float y) {
  if constexpr (kBeside == Beside::floats) {
    x = __float_as_uint(fmaf(__uint_as_float(x), 0.5f, y));
  } else {
    asm("{.reg .b32 y; mov.b32 y, %1; add.u32 %0, %0, y; xor.b32 %0, %0, 0x55aa55aa;}"
        : "+r"(x)
        : "f"(y));
  }
}

template <Beside kBeside, int kExtra>
__global__ void __launch_bounds__(kThreads)
    mixed_kernel(int rounds, unsigned seed, float* out, Stopwatch* times) {
  constexpr int kSteps = kBeside == Beside::floats ? kExtra : kExtra / 2;  // of each mma
  float acc[kRows][kColumns][4] = {};
  const Factors f(seed);
  unsigned chains[kChains];
#pragma unroll
  for (int c = 0; c < kChains; ++c) chains[c] = operand(seed, 300 + c);
  const Stopwatch start = Stopwatch::now();
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        // A sum of eight products before, lest the compiler put all products at the end.
        const float(&before)[4] = acc[(i + kRows - 2) % kRows][j];
        mma_bf16_once(acc[i][j], f.a[i], f.b[j]);
#pragma unroll
        for (int k = 0; k < kSteps; ++k) {
          step<kBeside>(chains[((i * kColumns + j) * kSteps + k) % kChains], before[k % 4]);
        }
      }
    }
  }
  float sum = sum_of(acc);
#pragma unroll
  for (int c = 0; c < kChains; ++c) sum += __uint_as_float(chains[c]);
  out[blockIdx.x * kThreads + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) times[blockIdx.x] = Stopwatch::now() - start;
}

/// Cycles of each mma.sync with so many instructions beside it.
template <Beside kBeside, int kExtra>
Pace pace_with() {
  const unsigned blocks = kBlocksEach * multiprocessors();
  const TestStream stream;
  const TestArray<float> out(std::size_t{blocks} * kThreads);
  const TestArray<Stopwatch> watches(blocks);
  for (int i = 0; i < 3; ++i) {
    mixed_kernel<kBeside, kExtra>
        <<<blocks, kThreads, 0, stream>>>(kIssueRounds, 2654435761u, out.data(), watches.data());
  }
  stream.wait("mma beside other instructions");
  const Pace pace = pace_of(watches.read());
  const auto each = [](double cycles) {
    return cycles_each(cycles, double(kIssueRounds) * kRows * kColumns);
  };
  return {each(pace.cycles), each(pace.least), each(pace.most), pace.megahertz};
}

/// The last two numbers of kExtra are so many that instructions wait to be issued, not for the
/// tensor core.
template <Beside kBeside, int... kExtra>
void ask_beside(const std::string& name) {
  const Pace alone = pace_with<kBeside, 0>();
  say({.name = name + "-none",
       .question = "E17",
       .value = alone.cycles,
       .unit = "cycles",
       .verdict = verdict_of(alone.cycles, assumed_on_hopper(kCyclesAssumed), 0.03),
       .text = words("an mma.sync with nothing beside it takes %.2f cycles of a quarter; of the "
                     "shortest block %.2f, of the longest %.2f",
                     alone.cycles, alone.least, alone.most)});
  std::string list;
  double extra = 0, cycles = 0, each = 0;
  const auto one = [&](int now, double its_cycles) {
    list += words("%.2f with %d, ", its_cycles, now);
    each = (its_cycles - cycles) / (now - extra);
    extra = now;
    cycles = its_cycles;
  };
  (one(kExtra, pace_with<kBeside, kExtra>().cycles), ...);
  const double issue = cycles - each * extra;
  say({.name = name,
       .question = "E17",
       .value = issue,
       .unit = "cycles",
       .text =
           words("an mma.sync takes %sso that one instruction more takes %.2f of issue, and the "
                 "mma %.2f; at last %.2f instructions a cycle",
                 list.c_str(), each, issue, (extra + 1) / cycles)});
}

}  // namespace

void ask_issue() {
  ask_beside<Beside::floats, 1, 2, 3, 4, 6, 8, 12, 16>("issue-floats-beside-mma");
  ask_beside<Beside::integers, 2, 4, 6, 8, 12, 16>("issue-integers-beside-mma");
}

}  // namespace cputrain::cuda::probes
