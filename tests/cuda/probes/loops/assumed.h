#pragma once

#include <array>
#include <cstddef>

#include "backends/cuda/kernels/products/gemm_plan.h"

/// What the model of speed takes for granted of main loops on Hopper: scripts/gpu/hardware.json.
namespace cputrain::cuda::probes {

/// Bytes that shared memory moves in a clock, and the part of a loop's bytes that take time of it.
inline constexpr double kSharedBytes = 128, kSharedCounted = 0.82;

/// Cycles of an mma.sync with so many other instructions beside it.
struct CyclesBeside {
  double others, cycles;
};
inline constexpr std::array<CyclesBeside, 9> kCyclesBeside{{{0, 6.07},
                                                            {1, 6.25},
                                                            {2, 8.00},
                                                            {3, 8.12},
                                                            {4, 9.06},
                                                            {6, 11.36},
                                                            {8, 13.55},
                                                            {12, 17.54},
                                                            {16, 21.53}}};

/// Between two of them along a line.
constexpr double cycles_beside(double others) {
  std::size_t i = 1;
  while (i + 1 < kCyclesBeside.size() && kCyclesBeside[i].others < others) ++i;
  const CyclesBeside low = kCyclesBeside[i - 1], high = kCyclesBeside[i];
  return low.cycles +
         (others - low.others) / (high.others - low.others) * (high.cycles - low.cycles);
}

/// Instructions of a warp's step in the forward product, and the mma.sync among them: of sm_90a in
/// results/gpu-kernels/instructions.txt. TF32 and bf16 have as many.
struct LoopInstructions {
  int all, products;
};
constexpr LoopInstructions instructions_of_loop(const TileShape& tile) {
  if (tile == kTile128x32) return {128, 32};
  if (tile == kTile32x128 || tile == kTile64x64) return {110, 32};
  if (tile == kTile128x64) return {174, 64};
  if (tile == kTile128x128) return {266, 128};
  return {302, 128};
}

/// Cycles of an mma.sync and quarter of a multiprocessor by each bound. A loop takes as long as the
/// larger one at least, and as both together at most.
struct LoopBounds {
  double issue, shared;

  constexpr double least() const { return issue < shared ? shared : issue; }
  constexpr double most() const { return issue + shared; }
};
constexpr LoopBounds assumed_bounds(const TileShape& tile, int bytes_of_step,
                                    int products_of_step) {
  constexpr int kQuarters = 4;
  const LoopInstructions loop = instructions_of_loop(tile);
  const double others = static_cast<double>(loop.all - loop.products) / loop.products;
  return {cycles_beside(others),
          bytes_of_step * kSharedCounted / kSharedBytes * kQuarters / products_of_step};
}

}  // namespace cputrain::cuda::probes
