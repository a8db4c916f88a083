#include "backends/cuda/kernels/limits.h"

#include "backends/cuda/kernels/indices.h"
#include "backends/cuda/kernels/products/gemm_fragments.h"

namespace cputrain::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kBlocksEach = 2;
constexpr int kRows = 4, kColumns = 4;  // instructions of a warp that do not wait for each other

/// A register of a fragment: the nearest number of the format, twice where it holds a pair.
template <class N>
CPUTRAIN_DEVICE unsigned filled(float value) {
  if constexpr (N::kNumbers == Numbers::bf16) {
    return bf16_pair(value, value);
  } else {
    return to_tf32(value);
  }
}

template <class N>
__global__ void __launch_bounds__(kThreads) multiply_adds_kernel(int rounds, float* sums) {
  Sums<kRows, kColumns> acc{};
  RowFragments<kRows> a;
  ColumnFragments<kColumns> b;
  const int thread = thread_number();
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      a.of[i][k] = filled<N>(1 + thread + 4 * i + k);
    }
  }
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    b.of[j][0] = filled<N>(0.5f / (thread + 1 + j));
    b.of[j][1] = filled<N>(0.25f);
  }
  for (int round = 0; round < rounds; ++round) Product<N>::add(acc, a, b);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      sum += acc.of[i][j][0] + acc.of[i][j][1] + acc.of[i][j][2] + acc.of[i][j][3];
    }
  }
  sums[block_number() * kThreads + thread] = sum;
}

__global__ void __launch_bounds__(kPackThreads)
    triad_kernel(std::int64_t size, double factor, const double* __restrict__ b,
                 const double* __restrict__ c, double* __restrict__ a) {
  const std::int64_t i = first_of_thread<1>(block_number());
  if (i < size) a[i] = b[i] + factor * c[i];
}

}  // namespace

double multiply_adds(Numbers numbers, int multiprocessors, int rounds) {
  constexpr double kOfRound = kRows * kColumns * kWarps * kBlocksEach;
  const double instructions = kOfRound * multiprocessors * rounds;
  const double depth = numbers == Numbers::bf16 ? 16 : 8;
  const double products = numbers == Numbers::exact ? 3 : 1;  // that make one of exact numbers
  return instructions * 16 * 8 * depth / products;
}

std::size_t multiply_add_sums(int multiprocessors) {
  return offset_of_row(kThreads * kBlocksEach, multiprocessors);
}

void launch_multiply_adds(Stream stream, Numbers numbers, int multiprocessors, int rounds,
                          float* sums) {
  const auto kernel = numbers == Numbers::bf16 ? multiply_adds_kernel<Bf16Numbers>
                                               : multiply_adds_kernel<Tf32Numbers>;
  launch(stream, "multiply_adds", kernel, grid_of(kBlocksEach * multiprocessors), dim3(kThreads), 0,
         rounds, sums);
}

void launch_triad(Stream stream, std::size_t size, double factor, const double* b, const double* c,
                  double* a) {
  launch_row(stream, "triad", triad_kernel, 1, size, factor, b, c, a);
}

}  // namespace cputrain::cuda
