#pragma once

#include "backends/cuda/kernels/products/gemm_epilogue.h"
#include "backends/cuda/kernels/products/gemm_tiles.h"

/// The kernel of convolutions and dense layers: result[row][column] = sum over the depth of
/// A[row][depth] * B[column][depth], where A and B are gathered from maps and weights on the way
/// (implicit GEMM). A tensor-core GEMM as CUTLASS has them, with its words:
///
/// A block owns a tile of the result, and a slice of the depth (split-K). In each step of the main
/// loop its threads begin to copy the chunks of A and B that are needed two steps later (one in the
/// largest tiles) to shared memory (cp.async, a stage for each step), wait for those of this step,
/// and multiply: each warp reads fragments of its part of the tile and has the tensor cores
/// multiply them. What lies outside is filled with zeros by the copies (predicates). Behind the
/// loop sums go through shared memory to the epilogue, in whole chunks.
///
/// A direction of a convolution is a struct with
///   Problem<N>             what the host knows; part(z): what blocks whose z is this one compute;
///                          row_of_result(part, row); `result`, with the epilogue
///   Iterator<N, Tile>      a thread's predicated iterator over tiles of both operands: `A` and `B`
///                          are their layouts, precompute() writes the offsets of the next steps
///                          into its Table in shared memory, which holds kSteps; copy() begins the
///                          copies of a step
///   BiasGradient<N, Tile>  sums of A's rows besides, if any
///   kDepthInside           the tiles' layout is DepthInside
namespace cputrain::cuda {

/// A tile of the result, and a slice of its depth.
struct TileOffset {
  int row, column;        ///< its first
  int slice, begin, end;  ///< steps of the slice
};

template <class Iterator, class Tile>
union GemmMemory {
  struct {
    typename Tile::Stage stages[Tile::kStages];
    typename Iterator::Table table;
  } loop;
  /// Sums of each warp. Rows are 8 numbers longer than the tile's, so that lanes that write at the
  /// same time meet different banks.
  alignas(128) float sums[Tile::kWarps][Tile::kWarpRows][Tile::kWarpColumns + 8];
};

struct NoBiasGradient {
  template <class Part>
  CPUTRAIN_DEVICE NoBiasGradient(const Part&, const TileOffset&, const WarpOffset&) {}
  CPUTRAIN_DEVICE void add(const unsigned char*) {}
  CPUTRAIN_DEVICE void store() const {}
};

/// Sums of a warp's part of the tile.
template <class N, class Tile, class Iterator>
class WarpProduct {
 public:
  typename Tile::WarpSums sums{};

  CPUTRAIN_DEVICE explicit WarpProduct(const WarpOffset& warp)
      : rows_(warp.row, warp.lane), columns_(warp.column, warp.lane) {}

  CPUTRAIN_DEVICE void add(const typename Tile::Stage& stage) {
    if constexpr (Product<N>::kSumsApart) {
      typename Tile::WarpSums of_step{};
      add_to(of_step, stage);
      sums += of_step;
    } else {
      add_to(sums, stage);
    }
  }

 private:
  CPUTRAIN_DEVICE void add_to(typename Tile::WarpSums& to, const typename Tile::Stage& stage) {
#pragma unroll
    for (int instruction = 0; instruction < kInstructionsOfStep; ++instruction) {
      RowFragments<Tile::kWarpRows / 16> a;
      ColumnFragments<Tile::kWarpColumns / 8> b;
      rows_.read(a, stage.a, instruction);
      columns_.read(b, stage.b, instruction);
      Product<N>::add(to, a, b);
    }
  }

  typename Iterator::A::Rows rows_;
  typename Iterator::B::Columns columns_;
};

/// The main loop. Copies are ahead of products; the table is written anew when they have used it
/// up, while those that were begun are on their way.
template <class Tile, class Memory, class Iterator, class WarpPart, class BiasGradient>
CPUTRAIN_DEVICE void multiply(Memory& memory, Iterator& iterator, int steps, WarpPart& product,
                              BiasGradient& bias_gradient) {
  constexpr int kAhead = Tile::kStages - 1;
  auto& stages = memory.loop.stages;
  const auto precompute = [&](int first) {
    iterator.precompute(memory.loop.table, min(steps - first, Iterator::kSteps));
    __syncthreads();
  };
  precompute(0);
#pragma unroll
  for (int stage = 0; stage < kAhead; ++stage) {
    if (stage < steps) iterator.copy(stages[stage]);
    commit_copies();
  }
  int step = 0, precomputed = Iterator::kSteps, stage = 0, free_stage = kAhead;
  while (true) {
    // Copies use the table kAhead steps before products do.
    const int end = precomputed < steps ? precomputed - kAhead : steps;
#pragma unroll 1
    for (; step < end; ++step) {
      wait_for_copies<kAhead - 1>();
      // Behind it the step's tiles are there for all, and all have left those of the step before.
      __syncthreads();
      if (step + kAhead < steps) iterator.copy(stages[free_stage]);
      commit_copies();
      bias_gradient.add(stages[stage].a);
      product.add(stages[stage]);
      free_stage = stage;
      stage = stage + 1 < Tile::kStages ? stage + 1 : 0;
    }
    if (step == steps) break;
    __syncthreads();
    precompute(precomputed);
    precomputed += Iterator::kSteps;
  }
  wait_for_copies<0>();
}

/// The epilogue of a warp's tile, whose sums lie in shared memory: each lane has a chunk of some
/// rows. A lane that has no column stores nothing.
template <class Tile, class Parameters, class Part, class Problem>
CPUTRAIN_DEVICE void store_tile(const Parameters& parameters, const Part& part,
                                const Problem& problem, int first_row, int first_column, int lane,
                                float (&sums)[Tile::kWarpRows][Tile::kWarpColumns + 8]) {
  using Sums = typename Epilogue<Parameters>::Sums;
  constexpr int kChunks = Tile::kWarpColumns / Sums::kCount, kRowsAtOnce = 32 / kChunks;
  const int in_tile = lane % kChunks * Sums::kCount, column = first_column + in_tile;
  const bool inside = column < part.columns;
  const int line = lane / kChunks, rows = inside ? part.rows - first_row : 0;
  Epilogue<Parameters> epilogue(parameters, inside ? column : 0);
  const auto row = [&](int i, const auto& f) {
    f(Sums::of_floats(&sums[i][in_tile]),
      offset_of_row(problem.row_of_result(part, first_row + i), part.columns) + column);
  };
  if constexpr (Parameters::kSums) {
    if (rows > 0) row(0, [&](const Sums& own, std::int64_t at) { epilogue.begin(own, at); });
  }
#pragma unroll 8
  for (int i = 0; i < Tile::kWarpRows; i += kRowsAtOnce) {
    if (i + line >= rows) break;
    row(i + line, [&](const Sums& own, std::int64_t at) { epilogue.store(own, at); });
  }
  if constexpr (Parameters::kSums) {
    __syncwarp();
    epilogue.leave(sums, line, in_tile);
  }
}

template <class Tile, class RowOrder, class ColumnOrder>
CPUTRAIN_DEVICE void stage_sums(float (&to)[Tile::kWarpRows][Tile::kWarpColumns + 8],
                                const typename Tile::WarpSums& sums, int lane) {
#pragma unroll
  for (int i = 0; i < Tile::kWarpRows / 16; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      ColumnOrder::put(to[RowOrder::row(i, half, lane)], sums.of[i], half, lane);
    }
  }
}

/// Grid: tiles, those of the result's shorter side in a row so that they share what they read of
/// the longer one; slices; parts of the problem.
template <class N, class Tile, class Direction>
__global__ void __launch_bounds__(Tile::kThreads)
    gemm(typename Direction::template Problem<N> problem, GemmPlan plan) {
  using Iterator = typename Direction::template Iterator<N, Tile>;
  using BiasGradient = typename Direction::template BiasGradient<N, Tile>;
  const BlockNumber block = BlockNumber::of_thread();
  const auto part = problem.part(block.z);
  const bool down = plan.row_tiles < plan.column_tiles;
  const int shorter = down ? plan.row_tiles : plan.column_tiles;
  const int along = block.x / shorter, across = block.x % shorter;
  const int steps = pieces(part.depth, kDepthOfStep<N>);
  const TileOffset tile{
      (down ? across : along) * Tile::kRows, (down ? along : across) * Tile::kColumns, block.y,
      slice_begin(steps, block.y, plan.slices), slice_begin(steps, block.y + 1, plan.slices)};
  if (tile.row >= part.rows) return;  // a part that is smaller than others: the whole block

  auto& memory = dynamic_shared<GemmMemory<Iterator, Tile>>();
  const WarpOffset warp = WarpOffset::of_thread<Tile>();
  Iterator iterator(part, tile);
  BiasGradient bias_gradient(part, tile, warp);
  WarpProduct<N, Tile, Iterator> product(warp);
  multiply<Tile>(memory, iterator, tile.end - tile.begin, product, bias_gradient);
  bias_gradient.store();

  __syncthreads();  // the stages become the sums' memory
  auto& sums = memory.sums[warp.number];
  stage_sums<Tile, typename Iterator::A::Order, typename Iterator::B::Order>(sums, product.sums,
                                                                             warp.lane);
  __syncwarp();
  const int row = tile.row + warp.row, column = tile.column + warp.column;
  with_epilogue(problem.result, tile.slice, plan.slices, [&](const auto& parameters) {
    store_tile<Tile>(parameters, part, problem, row, column, warp.lane, sums);
    write_sums<Tile>(parameters, tile.row, tile.column, part.rows, memory.sums);
  });
}

/// Puts a product into a stream by its plan: the slices and, where there are several, their sum.
template <class Direction, class N>
void launch_product(Stream stream, const char* name,
                    const typename Direction::template Problem<N>& problem,
                    const GemmExtent& extent, const GemmPlan& plan) {
  with_tile<N, Direction::kDepthInside>(plan.tile, [&]<class Tile>(Tile) {
    using Memory = GemmMemory<typename Direction::template Iterator<N, Tile>, Tile>;
    static_assert(sizeof(Memory) <= 99 << 10, "what a block may have on sm_86 and sm_89");
    static_assert(kBlocksOfMultiprocessor * (sizeof(Memory) + 1024) <= 164 << 10,
                  "what they may have on sm_80 together; a block has 1 KiB besides");
    launch(stream, name, gemm<N, Tile, Direction>,
           grid_of(plan.row_tiles * plan.column_tiles, plan.slices, extent.parts),
           dim3(Tile::kThreads), sizeof(Memory), problem, plan);
  });
  if (plan.slices > 1) {
    add_slices(stream, problem.result.of_slices(), plan.slices, extent.columns);
  }
}

}  // namespace cputrain::cuda
