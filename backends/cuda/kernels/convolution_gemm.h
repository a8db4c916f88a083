#pragma once

#include "backends/cuda/kernels/convolution.h"
#include "backends/cuda/kernels/convolution_problems.h"
#include "backends/cuda/kernels/gemm.h"
#include "backends/cuda/kernels/gemm_exact.h"

/// Puts a product into a stream as its plan says: the slices and, where there are several, their
/// sum.
namespace cputrain::cuda {

template <class Precision, class Tile, class Problem>
void launch_gemm(Stream stream, const char* name, const Problem& problem, const GemmExtent& extent,
                 const GemmPlan& plan, const GemmResult& result) {
  using A = typename Problem::template A<Precision, Tile::kRows, Tile::kThreads>;
  using B = typename Problem::template B<Precision, Tile::kColumns, Tile::kThreads>;
  static_assert(sizeof(GemmStages<A, B>) <= 99 << 10, "what a block may have on sm_86 and sm_89");
  const dim3 grid(static_cast<unsigned>(plan.row_tiles) * static_cast<unsigned>(plan.column_tiles),
                  static_cast<unsigned>(plan.slices), static_cast<unsigned>(extent.parts));
  launch(stream, name, gemm<Precision, Tile, Problem>, grid, dim3(Tile::kThreads),
         sizeof(GemmStages<A, B>), problem, plan, result);
}

template <class Precision, class Problem>
void launch_tiles(Stream stream, const char* name, const Problem& problem, const GemmExtent& extent,
                  const GemmPlan& plan, const GemmResult& result) {
  const auto with = [&]<class Tile>(Tile) {
    launch_gemm<Precision, Tile>(stream, name, problem, extent, plan, result);
  };
  switch (plan.tile) {
    case GemmTileSize::tall:
      return with(TallTile{});
    case GemmTileSize::wide:
      return with(WideTile{});
    case GemmTileSize::square:
      return with(SquareTile{});
    case GemmTileSize::large:
      return with(LargeTile{});
  }
}

/// `result.slice`: numbers of the result.
template <class Precision, class Problem>
void multiply(Stream stream, const char* name, const Problem& problem, const GemmExtent& extent,
              const GemmPlan& plan, float* workspace, const GemmResult& result) {
  if (plan.slices == 1) {
    launch_tiles<Precision>(stream, name, problem, extent, plan, result);
    return;
  }
  const GemmResult partials{workspace, nullptr, false, result.slice};
  launch_tiles<Precision>(stream, name, problem, extent, plan, partials);
  add_slices(stream, result, workspace, plan.slices, static_cast<int>(extent.columns));
}

}  // namespace cputrain::cuda
