#include "backends/cuda/kernels/gemm_slices.h"

#include "backends/cuda/device/language.h"
#include "backends/cuda/kernels/quads.h"
#include "backends/cuda/kernels/shapes.h"

namespace cputrain::cuda {

namespace {

constexpr int kThreadsOfSum = 256, kNumbersOfThread = 4;
/// Resident on a multiprocessor at least: leaves registers for several reads of a thread.
constexpr int kBlocksOfSum = 4;

/// The rows `begin`, `begin` + `step`, ... of four columns, whose first is `column`. Eight reads
/// are on their way at a time.
CPUTRAIN_DEVICE float4 sum_of_rows(const float* column, std::size_t width, unsigned begin,
                                   unsigned end, unsigned step) {
  constexpr unsigned kReads = 8;
  const std::size_t stride = step * width;
  const float* at = column + begin * width;
  float4 sum = quad_of(0, 0, 0, 0);
  for (unsigned first = begin; first < end; first += kReads * step) {
    float4 rows[kReads];
#pragma unroll
    for (unsigned i = 0; i < kReads; ++i) {
      rows[i] = first + i * step < end ? load_quad(at) : quad_of(0, 0, 0, 0);
      at += stride;
    }
#pragma unroll
    for (unsigned i = 0; i < kReads; ++i) sum = sum_of(sum, rows[i]);
  }
  return sum;
}

struct LineSums {
  float4 sums[kThreadsOfSum];
};

/// A block's threads are lines (y), a power of two of them. The sums of all lines by halves, which
/// is the same order every time; the first line gets them. All threads take part.
CPUTRAIN_DEVICE float4 sum_of_lines(const float4& sum) {
  auto& block = shared<LineSums>();
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  block.sums[thread] = sum;
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) {
      const float4& other = block.sums[thread + half * blockDim.x];
      block.sums[thread] = sum_of(block.sums[thread], other);
    }
  }
  return block.sums[thread];
}

CPUTRAIN_DEVICE std::size_t first_column_of_thread() {
  return (static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kNumbersOfThread;
}

__global__ void __launch_bounds__(kThreadsOfSum, kBlocksOfSum)
    add_slices_kernel(GemmResult result, const float* partials, int slices, int columns) {
  const std::size_t at = first_column_of_thread();
  const bool inside = at < result.slice;
  const auto end = static_cast<unsigned>(inside ? slices : 0);
  float4 sum = sum_of_lines(sum_of_rows(partials + at, result.slice, threadIdx.y, end, blockDim.y));
  if (!inside || threadIdx.y > 0) return;
  if (result.bias) {
    sum = sum_of(sum, load_quad(result.bias + at % static_cast<std::size_t>(columns)));
  }
  if (result.add) sum = sum_of(sum, load_quad(result.values + at));
  store_quad(result.values + at, sum);
}

/// Columns of a matrix that a block sums.
constexpr int kSumColumns = 32;
constexpr int kSumLanes = kSumColumns / kNumbersOfThread;

/// sums[part][column] of the rows of each of gridDim.y parts; blocks' x is the group of columns.
__global__ void __launch_bounds__(kThreadsOfSum, kBlocksOfSum)
    sum_columns_kernel(std::size_t rows, std::size_t columns, const float* matrix, float* sums) {
  const std::size_t column = first_column_of_thread(), part = blockIdx.y, parts = gridDim.y;
  const bool inside = column < columns;
  const auto begin = static_cast<unsigned>(rows * part / parts);
  const auto end = static_cast<unsigned>(inside ? rows * (part + 1) / parts : 0);
  const float4 sum =
      sum_of_lines(sum_of_rows(matrix + column, columns, begin + threadIdx.y, end, blockDim.y));
  if (inside && threadIdx.y == 0) store_quad(sums + part * columns + column, sum);
}

}  // namespace

void add_slices(Stream stream, const GemmResult& result, const float* partials, int slices,
                int columns) {
  const auto lines = static_cast<unsigned>(lines_of_sum(slices));
  const dim3 block(kThreadsOfSum / lines, lines);
  const std::size_t blocks = pieces(result.slice, std::size_t{block.x} * kNumbersOfThread);
  launch(stream, "add_slices", add_slices_kernel, dim3(static_cast<unsigned>(blocks)), block, 0,
         result, partials, slices, columns);
}

void sum_columns(Stream stream, const float* matrix, std::size_t rows, int columns, int parts,
                 float* sums) {
  const std::size_t groups = pieces(static_cast<std::size_t>(columns), kSumColumns);
  launch(stream, "sum_columns", sum_columns_kernel,
         dim3(static_cast<unsigned>(groups), static_cast<unsigned>(parts)),
         dim3(kSumLanes, kThreadsOfSum / kSumLanes), 0, rows, static_cast<std::size_t>(columns),
         matrix, sums);
}

}  // namespace cputrain::cuda
