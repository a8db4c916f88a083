#include "backends/cuda/kernels/gemm_slices.h"

#include "backends/cuda/device/language.h"
#include "backends/cuda/kernels/quads.h"
#include "backends/cuda/kernels/shapes.h"

namespace cputrain::cuda {

namespace {

constexpr int kThreadsOfSum = 256, kNumbersOfThread = 4;

__global__ void __launch_bounds__(kThreadsOfSum)
    add_slices_kernel(GemmResult result, const float* partials, int slices, int columns) {
  const std::size_t thread =
      static_cast<std::size_t>(blockIdx.x) * kThreadsOfSum + static_cast<std::size_t>(threadIdx.x);
  const std::size_t at = thread * kNumbersOfThread;
  if (at >= result.slice) return;
  float4 sum = *reinterpret_cast<const float4*>(partials + at);
  for (int s = 1; s < slices; ++s) {
    partials += result.slice;
    sum = sum_of(sum, *reinterpret_cast<const float4*>(partials + at));
  }
  if (result.bias) {
    const std::size_t column = at % static_cast<std::size_t>(columns);
    sum = sum_of(sum, *reinterpret_cast<const float4*>(result.bias + column));
  }
  auto* dst = reinterpret_cast<float4*>(result.values + at);
  *dst = result.add ? sum_of(sum, *dst) : sum;
}

/// Columns of a matrix that a block sums, 4 a thread, and rows it reads at a time.
constexpr int kSumColumns = 32;
constexpr int kSumLanes = kSumColumns / kNumbersOfThread;
constexpr int kSumRows = kThreadsOfSum / kSumLanes;

struct ColumnSums {
  float4 sums[kSumRows][kSumLanes];
};

/// sums[part][column] of the rows of each of gridDim.y parts; blocks' x is the group of columns.
__global__ void __launch_bounds__(kThreadsOfSum)
    sum_columns_kernel(std::size_t rows, int columns, const float* matrix, float* sums) {
  auto& block = shared<ColumnSums>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kSumLanes, line = thread / kSumLanes;
  const int column = static_cast<int>(blockIdx.x) * kSumColumns + lane * kNumbersOfThread;
  const std::size_t part = blockIdx.y, parts = gridDim.y, width = static_cast<std::size_t>(columns);
  const std::size_t begin = rows * part / parts, end = rows * (part + 1) / parts;
  float4 sum{0, 0, 0, 0};
  if (column < columns) {
    for (std::size_t row = begin + static_cast<std::size_t>(line); row < end; row += kSumRows) {
      const float* at = matrix + row * width + static_cast<std::size_t>(column);
      sum = sum_of(sum, *reinterpret_cast<const float4*>(at));
    }
  }
  block.sums[line][lane] = sum;
#pragma unroll
  for (int half = kSumRows / 2; half > 0; half /= 2) {
    __syncthreads();
    if (line < half) {
      block.sums[line][lane] = sum_of(block.sums[line][lane], block.sums[line + half][lane]);
    }
  }
  if (line == 0 && column < columns) {
    float* at = sums + part * width + static_cast<std::size_t>(column);
    *reinterpret_cast<float4*>(at) = block.sums[0][lane];
  }
}

}  // namespace

void add_slices(Stream stream, const GemmResult& result, const float* partials, int slices,
                int columns) {
  const std::size_t blocks = pieces(result.slice, kThreadsOfSum * kNumbersOfThread);
  launch(stream, "add_slices", add_slices_kernel, dim3(static_cast<unsigned>(blocks)),
         dim3(kThreadsOfSum), 0, result, partials, slices, columns);
}

void sum_columns(Stream stream, const float* matrix, std::size_t rows, int columns, int parts,
                 float* sums) {
  const std::size_t groups = pieces(static_cast<std::size_t>(columns), kSumColumns);
  launch(stream, "sum_columns", sum_columns_kernel,
         dim3(static_cast<unsigned>(groups), static_cast<unsigned>(parts)), dim3(kThreadsOfSum), 0,
         rows, columns, matrix, sums);
}

}  // namespace cputrain::cuda
