#pragma once

/// Warps that keep tensor cores busy from registers: what the probes of their rates share, so that
/// a cycle of an instruction means the same to all of them.
#include "backends/cuda/device/tensor_core.h"
#include "cuda/probes/probe.h"

namespace cputrain::cuda::probes {

constexpr int kThreads = 256, kWarps = kThreads / 32, kBlocksEach = 2, kQuarters = 4;
constexpr int kRows = 4, kColumns = 4;  // instructions of a warp that do not wait for each other

/// Cycles of an instruction and quarter of a multiprocessor: `cycles` of a block, whose warps have
/// each done so many.
inline double cycles_each(double cycles, double instructions) {
  return cycles / (instructions * kWarps * kBlocksEach / kQuarters);
}

#ifdef __CUDACC__
/// Numbers between 1/2 and 1 of either sign with random bits, two of bf16 or one of TF32 and some
/// of its lower bits; or zeros, of seed 0. No two registers hold the same.
__device__ __forceinline__ unsigned operand(unsigned seed, unsigned i) {
  if (seed == 0) return 0;
  unsigned x = seed * (threadIdx.x + 977 * i + 1);
  x = (x ^ x >> 15) * 2246822519u;
  x ^= x >> 13;
  return (x & 0x807f807fu) | 0x3f003f00u;
}

struct Factors {
  unsigned a[kRows][4], b[kColumns][2], more_b[kColumns][2];

  __device__ explicit Factors(unsigned seed) {
#pragma unroll
    for (unsigned i = 0; i < kRows; ++i) {
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) a[i][k] = operand(seed, 4 * i + k);
    }
#pragma unroll
    for (unsigned j = 0; j < kColumns; ++j) {
#pragma unroll
      for (unsigned k = 0; k < 2; ++k) {
        b[j][k] = operand(seed, 100 + 2 * j + k);
        more_b[j][k] = operand(seed, 200 + 2 * j + k);
      }
    }
  }
};

__device__ __forceinline__ float sum_of(const float (&acc)[kRows][kColumns][4]) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      sum += acc[i][j][0] + acc[i][j][1] + acc[i][j][2] + acc[i][j][3];
    }
  }
  return sum;
}

/// mma_bf16 of one instruction.
__device__ __forceinline__ void mma_bf16_once(float (&acc)[4], const unsigned (&a)[4],
                                              const unsigned (&b)[2]) {
  mma_bf16(reinterpret_cast<float(&)[1][1][4]>(acc), reinterpret_cast<const unsigned(&)[1][4]>(a),
           reinterpret_cast<const unsigned(&)[1][2]>(b));
}
#endif

}  // namespace cputrain::cuda::probes
