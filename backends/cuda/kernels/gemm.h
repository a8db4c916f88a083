#pragma once

#include "backends/cuda/kernels/gemm_plan.h"
#include "backends/cuda/kernels/gemm_slices.h"
#include "backends/cuda/kernels/gemm_tiles.h"

/// The main loop of convolutions and dense layers: result[row][column] = sum over the depth of
/// A[row][depth] * B[column][depth], where A and B are gathered from maps and weights on the way
/// (implicit GEMM).
///
/// A block owns a tile of the result, and a slice of the depth. In each step its threads begin to
/// copy the chunks (16 bytes) of A and B that are needed two steps later to shared memory
/// (cp.async, three stages), wait for those of this step, and multiply: each warp reads fragments
/// of its part of the tile and has the tensor cores multiply them. What lies outside (windows
/// beyond the map, rows beyond the matrix, depths beyond its end) is filled with zeros by the
/// copies. The results of slices go to memory of their own; add_slices() (gemm_slices.h) adds them
/// in order.
///
/// Four things are parameters:
/// - the precision (gemm_exact.h): type of an element, elements of a chunk and of a step, reading
///   of fragments where rows lie inside, products, whether sums are kept apart. A further one adds
///   such a struct and nothing here: TF32 is Exact with one product, of rounded fragments; bf16 has
///   16-bit elements, 8 a chunk, 64 a step, reads fragments where rows lie inside with
///   load_matrices_transposed(), and multiplies with mma_bf16().
/// - the tile (gemm_plan.h);
/// - the problem: which operands (convolution_operands.h) gather A and B, and where rows of the
///   result lie;
/// - what becomes of the sums (GemmResult).
namespace cputrain::cuda {

inline constexpr int kStages = 3;

template <class A, class B>
struct GemmStages {
  alignas(128) typename A::Element a[kStages][A::Layout::kElements];
  alignas(128) typename B::Element b[kStages][B::Layout::kElements];
};

/// Where a warp works.
struct WarpPlace {
  int row, column;  ///< in the block's tile
  int lane;
};

template <class Tile>
CPUTRAIN_DEVICE WarpPlace warp_place() {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  return {warp / Tile::kWarpsBeside * Tile::kWarpRows,
          warp % Tile::kWarpsBeside * Tile::kWarpColumns, thread % 32};
}

template <int kRows, int kColumns>
CPUTRAIN_DEVICE void add_sums(float (&sums)[kRows][kColumns][4],
                              const float (&more)[kRows][kColumns][4]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
#pragma unroll
      for (int r = 0; r < 4; ++r) sums[i][j][r] += more[i][j][r];
    }
  }
}

/// sums += a warp's part of the product of two tiles.
template <class Precision, class A, class B, int kRows, int kColumns>
CPUTRAIN_DEVICE void multiply_tiles(const typename A::Element* a, const typename B::Element* b,
                                    const WarpPlace& warp, float (&sums)[kRows][kColumns][4]) {
#pragma unroll
  for (int instruction = 0; instruction < kInstructionsOfStep; ++instruction) {
    unsigned rows[kRows][4], columns[kColumns][2];
    A::Layout::read_rows(rows, a, warp.row, instruction, warp.lane);
    B::Layout::read_columns(columns, b, warp.column, instruction, warp.lane);
    Precision::multiply(sums, rows, columns);
  }
}

template <class Precision, class A, class B, int kRows, int kColumns>
CPUTRAIN_DEVICE void add_step(const typename A::Element* a, const typename B::Element* b,
                              const WarpPlace& warp, float (&sums)[kRows][kColumns][4]) {
  if constexpr (Precision::kSumsApart) {
    float of_step[kRows][kColumns][4] = {};
    multiply_tiles<Precision, A, B>(a, b, warp, of_step);
    add_sums(sums, of_step);
  } else {
    multiply_tiles<Precision, A, B>(a, b, warp, sums);
  }
}

template <class A, class B>
CPUTRAIN_DEVICE void copy_step(GemmStages<A, B>& stages, int stage, A& a, B& b) {
  a.copy(stages.a[stage]);
  b.copy(stages.b[stage]);
}

/// sums = those of the warp's part of the tile over so many steps.
template <class Precision, class A, class B, int kRows, int kColumns>
CPUTRAIN_DEVICE void sum_steps(GemmStages<A, B>& stages, A& a, B& b, int steps,
                               const WarpPlace& warp, float (&sums)[kRows][kColumns][4]) {
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    if (stage < steps) copy_step(stages, stage, a, b);
    commit_copies();
  }
  int stage = 0, free_stage = kStages - 1;
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<kStages - 2>();
    // Behind it the step's tiles are there for all, and all have left those of the step before.
    __syncthreads();
    if (step + kStages - 1 < steps) copy_step(stages, free_stage, a, b);
    commit_copies();
    add_step<Precision, A, B>(stages.a[stage], stages.b[stage], warp, sums);
    free_stage = stage;
    stage = stage + 1 < kStages ? stage + 1 : 0;
  }
  wait_for_copies<0>();
}

/// Two neighbours of a row; `at` is even.
CPUTRAIN_DEVICE void store_pair(const GemmResult& result, std::size_t at, int column, float low,
                                float high) {
  if (result.bias) {
    low += result.bias[column];
    high += result.bias[column + 1];
  }
  auto* pair = reinterpret_cast<float2*>(result.values + at);
  if (result.add) {
    const float2 old = *pair;
    low += old.x;
    high += old.y;
  }
  *pair = make_float2(low, high);
}

/// The warp's sums, whose tile begins at (row, column) of the part of the result.
template <class Part, int kRows, int kColumns>
CPUTRAIN_DEVICE void store_sums(const GemmResult& result, const Part& part, int first_row,
                                int first_column, int lane,
                                const float (&sums)[kRows][kColumns][4]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + 16 * i + 8 * half + lane / 4;
      if (row >= part.rows) continue;
      const std::size_t begin = part.place(row) * static_cast<std::size_t>(part.columns);
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const int column = first_column + 8 * j + 2 * (lane % 4);
        if (column >= part.columns) continue;
        store_pair(result, begin + static_cast<std::size_t>(column), column, sums[i][j][2 * half],
                   sums[i][j][2 * half + 1]);
      }
    }
  }
}

/// Grid: tiles, those of the shorter side of the result in a row so that they share what they read
/// of the longer one; slices; parts of the problem.
template <class Precision, class Tile, class Problem>
__global__ void __launch_bounds__(Tile::kThreads)
    gemm(Problem problem, GemmPlan plan, GemmResult result) {
  using A = typename Problem::template A<Precision, Tile::kRows, Tile::kThreads>;
  using B = typename Problem::template B<Precision, Tile::kColumns, Tile::kThreads>;
  const auto part = problem.part(static_cast<int>(blockIdx.z));
  const int tile = static_cast<int>(blockIdx.x), slice = static_cast<int>(blockIdx.y);
  const bool down = plan.row_tiles < plan.column_tiles;
  const int first_row = (down ? tile % plan.row_tiles : tile / plan.column_tiles) * Tile::kRows;
  const int first_column =
      (down ? tile / plan.row_tiles : tile % plan.column_tiles) * Tile::kColumns;
  if (first_row >= part.rows) return;  // a part that is smaller than others: the whole block

  const int steps = (part.depth + Precision::kDepth - 1) / Precision::kDepth;
  const int begin = slice_begin(steps, slice, plan.slices);
  const int end = slice_begin(steps, slice + 1, plan.slices);
  A a(part.a, first_row, begin * Precision::kDepth);
  B b(part.b, first_column, begin * Precision::kDepth);
  const WarpPlace warp = warp_place<Tile>();
  float sums[Tile::kRowFragments][Tile::kColumnFragments][4] = {};
  sum_steps<Precision>(dynamic_shared<GemmStages<A, B>>(), a, b, end - begin, warp, sums);
  result.values += static_cast<std::size_t>(slice) * result.slice;
  store_sums(result, part, first_row + warp.row, first_column + warp.column, warp.lane, sums);
}

}  // namespace cputrain::cuda
