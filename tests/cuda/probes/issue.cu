// How many ordinary instructions find a place beside each mma.sync: E17. The main loops of the
// kernels have between two and fifteen.
#include "backends/cuda/device/tensor_core.h"
#include "cuda/probes/groups.h"
#include "cuda/probes/probe.h"

namespace cputrain::cuda::probes {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kBlocksEach = 2, kQuarters = 4;
constexpr int kRows = 4, kColumns = 4, kChains = 8, kRounds = 4000;

enum class Beside {
  floats,   ///< multiply-adds of floats, of which a quarter may begin one each cycle
  integers  ///< additions and logic of integers, of which some begin every other cycle
};

/// One step of a chain that a compiler cannot shorten. Two instructions where `kBeside` is
/// integers.
template <Beside kBeside>
__device__ __forceinline__ unsigned next(unsigned x, unsigned y) {
  if constexpr (kBeside == Beside::floats) {
    return __float_as_uint(fmaf(__uint_as_float(x), 0.5f, __uint_as_float(y)));
  } else {
    return (x + y) ^ 0x55aa55aau;
  }
}

template <Beside kBeside, int kExtra>
__global__ void __launch_bounds__(kThreads)
    mixed_kernel(int rounds, unsigned seed, float* out, long long* cycles) {
  constexpr int kEach = kBeside == Beside::floats ? 1 : 2;  // instructions of next()
  constexpr int kSteps = kRows * kColumns * kExtra / kEach;
  float acc[kRows][kColumns][4] = {};
  unsigned a[kRows][4], b[kColumns][2], chains[kChains];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (unsigned k = 0; k < 4; ++k)
      a[i][k] = (seed * (threadIdx.x + k + 1) & 0x807f807fu) | 0x3f003f00u;
  }
#pragma unroll
  for (int j = 0; j < kColumns; ++j) b[j][0] = b[j][1] = a[j][0] ^ 0x00010001u;
#pragma unroll
  for (int c = 0; c < kChains; ++c) chains[c] = a[c % kRows][c / kRows];
  const long long start = clock64();
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    mma_bf16(acc, a, b);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      chains[step % kChains] = next<kBeside>(chains[step % kChains], a[step % kRows][1]);
    }
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) sum += acc[i][j][0] + acc[i][j][3];
  }
#pragma unroll
  for (int c = 0; c < kChains; ++c) sum += __uint_as_float(chains[c]);
  out[blockIdx.x * kThreads + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - start;
}

/// Cycles of an mma.sync with so many instructions beside it, in a quarter of a multiprocessor.
template <Beside kBeside, int kExtra>
double cycles_with() {
  const unsigned blocks = kBlocksEach * multiprocessors();
  const TestStream stream;
  const TestArray<float> out(std::size_t{blocks} * kThreads);
  const TestArray<long long> cycles(blocks);
  for (int i = 0; i < 3; ++i) {
    mixed_kernel<kBeside, kExtra>
        <<<blocks, kThreads, 0, stream>>>(kRounds, 2654435761u, out.data(), cycles.data());
  }
  stream.wait("mma beside other instructions");
  double sum = 0;
  for (const long long c : cycles.read()) sum += static_cast<double>(c);
  return sum / blocks / (double(kRounds) * kRows * kColumns * kWarps * kBlocksEach / kQuarters);
}

template <Beside kBeside, int... kExtra>
void ask_beside(const char* name) {
  const double alone = cycles_with<kBeside, 0>();
  std::string list = words("%.2f cycles alone", alone);
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
