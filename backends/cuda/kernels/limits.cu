#include "backends/cuda/kernels/limits.h"

#include "backends/cuda/device/tensor_core.h"
#include "backends/cuda/kernels/shapes.h"

namespace cputrain::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kBlocksEach = 2;
constexpr int kRows = 4, kColumns = 4;  // instructions of a warp that do not wait for each other

__global__ void __launch_bounds__(kThreads) multiply_adds_kernel(int rounds, float* sums) {
  float acc[kRows][kColumns][4] = {};
  unsigned a[kRows][4], b[kColumns][2];
  const unsigned thread = threadIdx.x;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      a[i][k] = to_tf32(1.0f + static_cast<float>(thread + static_cast<unsigned>(4 * i + k)));
    }
  }
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    b[j][0] = to_tf32(0.5f / static_cast<float>(thread + 1 + static_cast<unsigned>(j)));
    b[j][1] = to_tf32(0.25f);
  }
  for (int round = 0; round < rounds; ++round) mma_tf32(acc, a, b);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      sum += acc[i][j][0] + acc[i][j][1] + acc[i][j][2] + acc[i][j][3];
    }
  }
  sums[blockIdx.x * kThreads + thread] = sum;
}

__global__ void __launch_bounds__(kThreads)
    triad_kernel(std::size_t size, double factor, const double* __restrict__ b,
                 const double* __restrict__ c, double* __restrict__ a) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < size) a[i] = b[i] + factor * c[i];
}

}  // namespace

double multiply_adds(int multiprocessors, int rounds) {
  constexpr double kOfAnInstruction = 16 * 8 * 8;
  return kOfAnInstruction * kRows * kColumns * kWarps * kBlocksEach * multiprocessors * rounds;
}

std::size_t multiply_add_sums(int multiprocessors) {
  return static_cast<std::size_t>(kThreads * kBlocksEach * multiprocessors);
}

void launch_multiply_adds(Stream stream, int multiprocessors, int rounds, float* sums) {
  launch(stream, "multiply_adds", multiply_adds_kernel,
         dim3(static_cast<unsigned>(kBlocksEach * multiprocessors)), dim3(kThreads), 0, rounds,
         sums);
}

void launch_triad(Stream stream, std::size_t size, double factor, const double* b, const double* c,
                  double* a) {
  launch(stream, "triad", triad_kernel, dim3(static_cast<unsigned>(pieces(size, kThreads))),
         dim3(kThreads), 0, size, factor, b, c, a);
}

}  // namespace cputrain::cuda
