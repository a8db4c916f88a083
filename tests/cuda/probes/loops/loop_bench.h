#pragma once

#include "backends/cuda/kernels/products/gemm.h"
#include "cuda/probes/loops/matrices.h"
#include "cuda/probes/loops/tile_loops.h"
#include "cuda/probes/probe.h"

/// Times of loops on a GPU, and whether their sums are right.
namespace cputrain::cuda::probes {

template <class Loop, class Tile, Parts kParts, class Iterator, class Problem>
__global__ void __launch_bounds__(Tile::kThreads)
    loop_kernel(Problem problem, bool own_rows, int steps, float* tiles, Stopwatch* times) {
  Stopwatch start;
  run_block<Loop, Tile, kParts, Iterator>(
      problem, own_rows, steps, tiles, [&] { start = Stopwatch::now(); },
      [&] {
        __syncthreads();
        if (thread_number() == 0) times[block_number()] = Stopwatch::now() - start;
      });
}

constexpr int kLoopSteps = 256;

struct LoopRun {
  unsigned blocks_each = 2;  ///< that a multiprocessor holds, no more and no fewer
  bool own_rows = false;     ///< else all blocks copy the same lines at the same time
  int steps = kLoopSteps;
};

struct LoopPace {
  double cycles = 0;  ///< of a multiprocessor, for a block's step
  double megahertz = 0;
};

class LoopBench {
 public:
  template <class Loop>
  bool fits(unsigned blocks_each) const {
    return Loop::kMemoryBytes <= memory_for(blocks_each);
  }

  /// The loop must fit.
  template <class Loop, class Tile, Parts kParts, class Iterator, class Problem>
  LoopPace pace(const Problem& problem, const LoopRun& run) {
    const auto kernel = loop_kernel<Loop, Tile, kParts, Iterator, Problem>;
    const std::size_t memory = memory_for(run.blocks_each);
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(memory)),
          "the attribute for a loop's shared memory");
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100),
          "the attribute for the carve-out");
    // NaN, lest what the loop before has written be taken for this one's.
    check(
        cudaMemsetAsync(tiles_.data(), 0xff, kNumbers * multiprocessors_ * sizeof(float), stream_),
        "cudaMemsetAsync");
    const unsigned blocks = run.blocks_each * multiprocessors_;
    const double seconds = seconds_each(stream_, 1, [&] {
      kernel<<<blocks, Tile::kThreads, memory, stream_>>>(problem, run.own_rows, run.steps,
                                                          tiles_.data(), watches_.data());
    });
    std::vector<Stopwatch> watches = watches_.read();
    watches.resize(blocks);
    if (run.steps == kLoopSteps) check_placing(watches, seconds, run.blocks_each);
    const Pace pace = pace_of(watches);
    return {pace.cycles / (double(run.steps) * run.blocks_each), pace.megahertz};
  }

  /// A block's tile, from the last loop.
  std::vector<float> tile(std::size_t block, std::size_t size) const {
    std::vector<float> values(size);
    check(cudaMemcpy(values.data(), tiles_.data() + block * size, size * sizeof(float),
                     cudaMemcpyDeviceToHost),
          "a copy to the host");
    return values;
  }

  unsigned multiprocessors() const { return multiprocessors_; }

 private:
  static constexpr unsigned kMostEach = 2;
  static constexpr std::size_t kNumbers =
      std::size_t{kMostEach} * 128 * 256;  // of a multiprocessor

  /// Cycles of a block are those of a multiprocessor only where its blocks ran side by side.
  void check_placing(const std::vector<Stopwatch>& watches, double seconds, unsigned wanted) const {
    double busy = 0;
    for (const Stopwatch& watch : watches) busy += 1e-9 * static_cast<double>(watch.nanoseconds);
    const double at_a_time = busy / seconds / multiprocessors_;
    if (at_a_time > 0.65 * wanted) return;  // of a launch's time some is no loop's
    throw std::runtime_error(
        words("a multiprocessor held %.1f blocks of a loop at a time, not %u", at_a_time, wanted));
  }

  /// As much as blocks may have of which no more find room.
  std::size_t memory_for(unsigned blocks_each) const {
    return std::min(of_.sharedMemPerBlockOptin,
                    of_.sharedMemPerMultiprocessor / blocks_each - of_.reservedSharedMemPerBlock);
  }

  cudaDeviceProp of_ = properties_of_device();
  unsigned multiprocessors_ = static_cast<unsigned>(of_.multiProcessorCount);
  TestStream stream_;
  TestArray<float> tiles_{kNumbers * multiprocessors_};
  TestArray<Stopwatch> watches_{kMostEach * multiprocessors_};
};

/// What loops multiply whose rows and columns lie one behind the other.
template <class N>
class WindowNumbers {
 public:
  using Maker = Matrix (*)(Numbers, std::size_t lines, std::size_t depth, unsigned seed);

  WindowNumbers(Maker make, std::size_t rows, std::size_t columns, int steps)
      : steps_(steps),
        a_(make(N::kNumbers, rows, kStepsOfRows * kDepthOfStep<N>, 1)),
        b_(make(N::kNumbers, columns, static_cast<std::size_t>(steps) * kDepthOfStep<N>, 2)),
        there_a_(a_.bytes(false)),
        there_b_(b_.bytes(false)) {}

  template <class Tile>
  WindowProduct product(bool own_rows) const {
    const int rows = own_rows ? static_cast<int>(a_.lines) : Tile::kRows;
    return product_of_short_rows<N>(rows, Tile::kColumns, steps_, there_a_.data(), there_b_.data());
  }

  /// Among the sums of the tiles that the bench has of the last loop, which took all steps.
  template <class Tile>
  std::size_t wrong_sums_of(const LoopBench& bench, const std::vector<std::size_t>& blocks,
                            bool own_rows, double instructions) const {
    constexpr std::size_t kRows = Tile::kRows, kColumns = Tile::kColumns;
    const PlainColumns plain(b_, kColumns, static_cast<std::size_t>(steps_), a_.depth);
    std::size_t wrong = 0;
    for (const std::size_t block : blocks) {
      wrong += wrong_sums(plain.tile(a_, own_rows ? block * kRows : 0, kRows),
                          bench.tile(block, kRows * kColumns).data(), instructions);
    }
    return wrong;
  }

 private:
  int steps_;
  Matrix a_, b_;
  TestArray<std::byte> there_a_, there_b_;
};

}  // namespace cputrain::cuda::probes
