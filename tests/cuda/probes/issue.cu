// How many ordinary instructions find a place beside each mma.sync: E17. The main loops of the
// kernels have between two and fifteen.
#include "cuda/probes/groups.h"
#include "cuda/probes/tiles.h"

namespace cputrain::cuda::probes {
namespace {

constexpr int kChains = 8, kRounds = 4000;
constexpr double kCyclesAssumed = 6;  // of an mma.sync alone, on Hopper; products.cu asks for it

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
        <<<blocks, kThreads, 0, stream>>>(kRounds, 2654435761u, out.data(), watches.data());
  }
  stream.wait("mma beside other instructions");
  const Pace pace = pace_of(watches.read());
  const auto each = [](double cycles) {
    return cycles_each(cycles, double(kRounds) * kRows * kColumns);
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
