#include "backends/cuda/kernels/products/gemm_epilogue.h"
#include "backends/cuda/kernels/warp_sums.h"

namespace cputrain::cuda {

namespace {

constexpr int kThreadsOfSum = 256;
/// Resident on a multiprocessor at least. More would have registers for one read of a thread at a
/// time.
constexpr int kBlocksOfSum = 4;
/// Numbers of a thread: slices are floats, whatever the result is.
constexpr int kNumbersOfSum = 4;

template <class N>
using SumPack = Pack<N, kNumbersOfSum>;

/// The slices `begin`, `begin` + `step`, ... of the numbers at `first`, of which there are
/// `numbers` from slice to slice. Eight reads are on their way at a time.
template <class N>
CPUTRAIN_DEVICE SumPack<N> sum_of_slices(const float* first, std::int64_t numbers, int begin,
                                         int end, int step) {
  constexpr int kReads = 8;
  const float* at = first + begin * numbers;
  auto sum = SumPack<N>::all(0);
  for (int slice = begin; slice < end; slice += kReads * step) {
    SumPack<N> slices[kReads];
#pragma unroll
    for (int i = 0; i < kReads; ++i) {
      slices[i] = slice + i * step < end ? SumPack<N>::of_floats(at) : SumPack<N>::all(0);
      at += step * numbers;
    }
#pragma unroll
    for (int i = 0; i < kReads; ++i) sum += slices[i];
  }
  return sum;
}

template <class Parameters>
__global__ void __launch_bounds__(kThreadsOfSum, kBlocksOfSum)
    add_slices_kernel(GemmResult<Parameters> result, int slices, std::int64_t columns) {
  using N = typename Parameters::Numbers;
  const auto [x, line] = ThreadNumber::of_thread();
  const auto [across, lines] = BlockSize::of_thread();
  const std::int64_t at = (offset_of_row(block_number(), across) + x) * kNumbersOfSum;
  const bool inside = at < result.numbers;
  const SumPack<N> sum = sum_of_lines<kThreadsOfSum>(
      sum_of_slices<N>(result.partials + at, result.numbers, line, inside ? slices : 0, lines),
      across);
  if (!inside || line > 0) return;
  Epilogue<Parameters, kNumbersOfSum>(result.epilogue, at % columns).store(sum, at);
}

}  // namespace

template <class Parameters>
void add_slices(Stream stream, const GemmResult<Parameters>& result, int slices,
                std::int64_t columns) {
  const int lines = lines_of_sum(slices), threads = kThreadsOfSum / lines;
  launch(stream, "add_slices", add_slices_kernel<Parameters>,
         grid_of(pieces(result.numbers, threads * kNumbersOfSum)), grid_of(threads, lines), 0,
         result, slices, columns);
}

template void add_slices(Stream, const GemmResult<BiasAndAdd<ExactNumbers>>&, int, std::int64_t);
template void add_slices(Stream, const GemmResult<BiasAndAdd<Tf32Numbers>>&, int, std::int64_t);
template void add_slices(Stream, const GemmResult<BiasAndAdd<Bf16Numbers>>&, int, std::int64_t);

}  // namespace cputrain::cuda
