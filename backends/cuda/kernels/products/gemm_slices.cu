#include "backends/cuda/kernels/products/gemm_slices.h"

#include "backends/cuda/kernels/indices.h"
#include "backends/cuda/kernels/packs.h"

namespace cputrain::cuda {

namespace {

constexpr int kThreadsOfSum = 256;
/// Resident on a multiprocessor at least: leaves registers for several reads of a thread.
constexpr int kBlocksOfSum = 4;

/// The slices `begin`, `begin` + `step`, ... of the numbers at `first`, of which there are
/// `numbers` from slice to slice. Eight reads are on their way at a time.
template <class N>
CPUTRAIN_DEVICE Pack<N> sum_of_slices(const float* first, std::int64_t numbers, int begin, int end,
                                      int step) {
  constexpr int kReads = 8;
  const float* at = first + begin * numbers;
  Pack<N> sum = Pack<N>::all(0);
  for (int slice = begin; slice < end; slice += kReads * step) {
    Pack<N> slices[kReads];
#pragma unroll
    for (int i = 0; i < kReads; ++i) {
      slices[i] = slice + i * step < end ? Pack<N>::of_floats(at) : Pack<N>::all(0);
      at += step * numbers;
    }
#pragma unroll
    for (int i = 0; i < kReads; ++i) sum += slices[i];
  }
  return sum;
}

template <class N>
struct LineSums {
  Pack<N> sums[kThreadsOfSum];
};

/// A block's threads are lines (y), a power of two of them. The sums of all lines by halves, which
/// is the same order every time; the first line gets them. All threads take part.
template <class N>
CPUTRAIN_DEVICE Pack<N> sum_of_lines(const Pack<N>& sum) {
  auto& block = shared<LineSums<N>>();
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  block.sums[thread] = sum;
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) block.sums[thread] += block.sums[thread + half * blockDim.x];
  }
  return block.sums[thread];
}

template <class N>
__global__ void __launch_bounds__(kThreadsOfSum, kBlocksOfSum)
    add_slices_kernel(GemmResult<N> result, int slices, int columns) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * Pack<N>::kCount;
  const bool inside = at < result.numbers;
  const int line = ThreadNumber::of_thread().y, lines = static_cast<int>(blockDim.y);
  Pack<N> sum = sum_of_lines(
      sum_of_slices<N>(result.partials + at, result.numbers, line, inside ? slices : 0, lines));
  if (!inside || line > 0) return;
  if (result.bias) sum += Pack<N>::of_floats(result.bias + at % columns);
  if (result.add) sum += Pack<N>::load(result.values + at);
  sum.store(result.values + at);
}

}  // namespace

template <class N>
void add_slices(Stream stream, const GemmResult<N>& result, int slices, int columns) {
  const int lines = lines_of_sum(slices), threads = kThreadsOfSum / lines;
  const std::int64_t blocks = pieces(result.numbers, threads * Pack<N>::kCount);
  launch(stream, "add_slices", add_slices_kernel<N>, grid_of(static_cast<int>(blocks)),
         grid_of(threads, lines), 0, result, slices, columns);
}

template void add_slices(Stream, const GemmResult<ExactNumbers>&, int, int);
template void add_slices(Stream, const GemmResult<Tf32Numbers>&, int, int);
template void add_slices(Stream, const GemmResult<Bf16Numbers>&, int, int);

}  // namespace cputrain::cuda
