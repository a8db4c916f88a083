#pragma once

#include "backends/cuda/kernels/packs.h"
#include "backends/cuda/kernels/products/gemm_slices.h"
#include "backends/cuda/kernels/products/gemm_tiles.h"

/// The main loop of convolutions and dense layers: result[row][column] = sum over the depth of
/// A[row][depth] * B[column][depth], where A and B are gathered from maps and weights on the way
/// (implicit GEMM).
///
/// A block owns a tile of the result, and a slice of the depth. In each step its threads begin to
/// copy the chunks of A and B that are needed two steps later (one in the largest tiles) to shared
/// memory, wait for those of this step, and multiply: each warp reads fragments of its part of the
/// tile and has the tensor cores multiply them. What lies outside is filled with zeros by the
/// copies. Sums go through shared memory to the result, in whole chunks.
///
/// A direction of a convolution is a struct with
///   Problem<N>           what the host knows; part(z): what blocks whose z is this one compute;
///                        place(part, row): which row of the result a row of it is
///   Operands<N, Tile>    a thread's part of the copies: `A` and `B` are the layouts of its tiles,
///                        note() writes what the copies of the next steps have to know into its
///                        Table in shared memory, which holds kSteps; copy() begins those of one
///   BesideSums<N, Tile>  what else warps do with a tile of A
///   kDepthInside         the tiles' layout is DepthInside
namespace cputrain::cuda {

/// A tile of the result, and a slice of its depth.
struct TilePlace {
  int row, column;        ///< its first
  int slice, begin, end;  ///< steps of the slice
};

template <class Operands, class Tile>
union GemmMemory {
  struct {
    typename Tile::Stage stages[Tile::kStages];
    typename Operands::Table table;
  } loop;
  /// Sums of each warp. Rows are 8 numbers longer than the tile's, so that lanes that write at the
  /// same time meet different banks.
  alignas(128) float sums[Tile::kWarps][Tile::kWarpRows][Tile::kWarpColumns + 8];
};

/// f(where a slice's sums go)
template <class N, class F>
CPUTRAIN_DEVICE void with_slice(const GemmResult<N>& result, int slice, int slices, const F& f) {
  float* const partials = result.partials + slice * result.numbers;
  if constexpr (N::kNumbers == Numbers::exact) {
    const bool whole = slices == 1;
    f(GemmResult<N>{whole ? result.values : partials, whole ? result.bias : nullptr,
                    whole && result.add});
  } else if (slices > 1) {
    f(GemmResult<ExactNumbers>{partials});
  } else {
    f(result);
  }
}

/// Nothing.
struct NothingBeside {
  template <class Part>
  CPUTRAIN_DEVICE NothingBeside(const Part&, const TilePlace&, const WarpPlace&) {}
  CPUTRAIN_DEVICE void add(const unsigned char*) {}
  CPUTRAIN_DEVICE void store() const {}
};

/// Sums of a warp's part of the tile.
template <class N, class Tile, class Operands>
class WarpProduct {
 public:
  typename Tile::WarpSums sums{};

  CPUTRAIN_DEVICE explicit WarpProduct(const WarpPlace& warp)
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

  typename Operands::A::Rows rows_;
  typename Operands::B::Columns columns_;
};

/// The main loop. Copies are ahead of products; the table is written anew when they have used it
/// up, while those that were begun are on their way.
template <class Tile, class Memory, class Operands, class WarpPart, class Beside>
CPUTRAIN_DEVICE void multiply(Memory& memory, Operands& operands, int steps, WarpPart& product,
                              Beside& beside) {
  constexpr int kAhead = Tile::kStages - 1;
  auto& stages = memory.loop.stages;
  const auto note = [&](int first) {
    operands.note(memory.loop.table, min(steps - first, Operands::kSteps));
    __syncthreads();
  };
  note(0);
#pragma unroll
  for (int stage = 0; stage < kAhead; ++stage) {
    if (stage < steps) operands.copy(stages[stage]);
    commit_copies();
  }
  int step = 0, noted = Operands::kSteps, stage = 0, free_stage = kAhead;
  while (true) {
    // Copies use the table kAhead steps before products do.
    const int end = noted < steps ? noted - kAhead : steps;
#pragma unroll 1
    for (; step < end; ++step) {
      wait_for_copies<kAhead - 1>();
      // Behind it the step's tiles are there for all, and all have left those of the step before.
      __syncthreads();
      if (step + kAhead < steps) operands.copy(stages[free_stage]);
      commit_copies();
      beside.add(stages[stage].a);
      product.add(stages[stage]);
      free_stage = stage;
      stage = stage + 1 < Tile::kStages ? stage + 1 : 0;
    }
    if (step == steps) break;
    __syncthreads();
    note(noted);
    noted += Operands::kSteps;
  }
  wait_for_copies<0>();
}

/// Writes a warp's tile of sums, which lies in shared memory, to the result: each lane a chunk of
/// some rows.
template <class Tile, class N, class Part, class Problem>
CPUTRAIN_DEVICE void store_tile(const GemmResult<N>& result, const Part& part,
                                const Problem& problem, int first_row, int first_column, int lane,
                                const float (&sums)[Tile::kWarpRows][Tile::kWarpColumns + 8]) {
  constexpr int kCount = Pack<N>::kCount, kChunks = Tile::kWarpColumns / kCount;
  constexpr int kRowsAtOnce = 32 / kChunks;
  const int in_tile = lane % kChunks * kCount, column = first_column + in_tile;
  if (column >= part.columns) return;
  const Pack<N> bias = result.bias ? Pack<N>::of_floats(result.bias + column) : Pack<N>::all(0);
#pragma unroll 8
  for (int i = 0; i < Tile::kWarpRows; i += kRowsAtOnce) {
    const int row_in_tile = i + lane / kChunks, row = first_row + row_in_tile;
    if (row >= part.rows) break;
    Pack<N> pack = Pack<N>::of_floats(&sums[row_in_tile][in_tile]);
    pack += bias;
    auto* to = result.values + (offset_of_row(problem.place(part, row), part.columns) + column);
    if (result.add) pack += Pack<N>::load(to);
    pack.store(to);
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
  using Operands = typename Direction::template Operands<N, Tile>;
  using Beside = typename Direction::template BesideSums<N, Tile>;
  const BlockNumber block = BlockNumber::of_thread();
  const auto part = problem.part(block.z);
  const bool down = plan.row_tiles < plan.column_tiles;
  const int shorter = down ? plan.row_tiles : plan.column_tiles;
  const int along = block.x / shorter, across = block.x % shorter;
  const int steps = pieces(part.depth, kDepthOfStep<N>);
  const TilePlace tile{
      (down ? across : along) * Tile::kRows, (down ? along : across) * Tile::kColumns, block.y,
      slice_begin(steps, block.y, plan.slices), slice_begin(steps, block.y + 1, plan.slices)};
  if (tile.row >= part.rows) return;  // a part that is smaller than others: the whole block

  auto& memory = dynamic_shared<GemmMemory<Operands, Tile>>();
  const WarpPlace warp = WarpPlace::of_thread<Tile>();
  Operands operands(part, tile);
  Beside beside(part, tile, warp);
  WarpProduct<N, Tile, Operands> product(warp);
  multiply<Tile>(memory, operands, tile.end - tile.begin, product, beside);
  beside.store();

  __syncthreads();  // the stages become the sums' memory
  auto& sums = memory.sums[warp.number];
  stage_sums<Tile, typename Operands::A::Order, typename Operands::B::Order>(sums, product.sums,
                                                                             warp.lane);
  __syncwarp();
  const int row = tile.row + warp.row, column = tile.column + warp.column;
  with_slice(problem.result, tile.slice, plan.slices, [&](const auto& result) {
    store_tile<Tile>(result, part, problem, row, column, warp.lane, sums);
  });
}

template <class N, class Tile, class Direction>
void launch_gemm(Stream stream, const char* name,
                 const typename Direction::template Problem<N>& problem, const GemmExtent& extent,
                 const GemmPlan& plan) {
  using Memory = GemmMemory<typename Direction::template Operands<N, Tile>, Tile>;
  static_assert(sizeof(Memory) <= 99 << 10, "what a block may have on sm_86 and sm_89");
  static_assert(kBlocksOfMultiprocessor * (sizeof(Memory) + 1024) <= 164 << 10,
                "what they may have on sm_80 together; a block has 1 KiB besides");
  launch(stream, name, gemm<N, Tile, Direction>,
         grid_of(plan.row_tiles * plan.column_tiles, plan.slices, extent.parts),
         dim3(Tile::kThreads), sizeof(Memory), problem, plan);
}

/// Puts a product into a stream by its plan: the slices and, where there are several, their sum.
template <class Direction, class N>
void launch_product(Stream stream, const char* name,
                    const typename Direction::template Problem<N>& problem,
                    const GemmExtent& extent, const GemmPlan& plan) {
  const auto with = [&]<class Tile>(Tile) {
    launch_gemm<N, Tile, Direction>(stream, name, problem, extent, plan);
  };
  switch (plan.tile) {
    case GemmTileSize::tall:
      with(TallTile{});
      break;
    case GemmTileSize::wide:
      with(WideTile{});
      break;
    case GemmTileSize::square:
      with(SquareTile{});
      break;
    case GemmTileSize::large:
      with(LargeTile{});
      break;
    case GemmTileSize::huge:
      if constexpr (N::kNumbers != Numbers::exact) with(HugeTile{});
      break;
    case GemmTileSize::tower:
      if constexpr (N::kNumbers != Numbers::exact && Direction::kDepthInside) with(TowerTile{});
      break;
  }
  if (plan.slices > 1) {
    add_slices(stream, problem.result, plan.slices, extent.columns);
  }
}

}  // namespace cputrain::cuda
