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
        // A sum of four products before, lest the compiler put all products at the end.
        const float(&before)[4] = acc[(i + kRows - 1) % kRows][j];
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

/// Cycles of an mma.sync with so many instructions beside it, in a quarter of a multiprocessor.
template <Beside kBeside, int kExtra>
double cycles_with() {
  const unsigned blocks = kBlocksEach * multiprocessors();
  const TestStream stream;
  const TestArray<float> out(std::size_t{blocks} * kThreads);
  const TestArray<Stopwatch> watches(blocks);
  for (int i = 0; i < 3; ++i) {
    mixed_kernel<kBeside, kExtra>
        <<<blocks, kThreads, 0, stream>>>(kRounds, 2654435761u, out.data(), watches.data());
  }
  stream.wait("mma beside other instructions");
  return cycles_each(pace_of(watches.read()), double(kRounds) * kRows * kColumns);
}

template <Beside kBeside, int... kExtra>
void ask_beside(const char* name) {
  const double alone = cycles_with<kBeside, 0>();
  std::string list = words("%.2f cycles alone", alone);
  say({.name = std::string(name) + "-none",
       .question = "E17",
       .value = alone,
       .unit = "cycles",
       .verdict = verdict_of(alone, assumed_on_hopper(kCyclesAssumed), 0.03),
       .text = words("an mma.sync with nothing beside it takes %.2f cycles of a quarter", alone)});
  double most = 0, rate = 0;
  const auto one = [&](int extra, double cycles) {
    list += words(", %.2f with %d", cycles, extra);
    if (cycles < 1.1 * alone) most = extra;
    rate = (extra + 1) / cycles;  // of the last, where the issue is the limit
  };
  (one(kExtra, cycles_with<kBeside, kExtra>()), ...);
  say({.name = name,
       .question = "E17",
       .value = most,
       .unit = "instructions",
       .text = words("an mma.sync takes %s; %g of them cost it less than a tenth; at last %.2f "
                     "instructions a cycle",
                     list.c_str(), most, rate)});
}

}  // namespace

void ask_issue() {
  ask_beside<Beside::floats, 2, 3, 4, 5, 6, 8, 12>("issue-floats-beside-mma");
  ask_beside<Beside::integers, 2, 4, 6, 8, 12>("issue-integers-beside-mma");
}

}  // namespace cputrain::cuda::probes
