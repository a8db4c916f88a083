#pragma once

#include "backends/cuda/kernels/packs.h"
#include "backends/cuda/kernels/products/gemm_slices.h"

/// Epilogues: what a lane does with sums of its columns, which lie in shared memory behind the main
/// loop, or are those of all slices (split-K). An epilogue's parameters are a type of
/// gemm_slices.h; Epilogue of that type has
///   Sums               so many neighbours
///   Epilogue(p, c)     loads what all rows share from column c on
///   store(sums, at)    at number `at` of the result; returns what it rounded
/// An epilogue may make two sums of each column besides, for a batch norm: a part (ChannelSums) for
/// the rows of each block's tile. Parameters that have kSums have them as `sums`. Epilogue then has
///   begin(sums, at)               before all others: the first row of the warp's tile
///   leave(rows, line, column)     writes a lane's own to its warp's tile, which all have read: at
///                                 most 3 rows for each line of lanes
///   of_lines<L>(rows, column, n)  those of L lines and a column, over n rows; they can be merged
namespace cputrain::cuda {

template <class Parameters, int kCount = kNumbersOfChunk<typename Parameters::Numbers>>
class Epilogue;

/// Rounds once, when all is added.
template <class N, int kCount>
class Epilogue<BiasAndAdd<N>, kCount> {
 public:
  using Sums = Pack<N, kCount>;

  CPUTRAIN_DEVICE Epilogue(const BiasAndAdd<N>& parameters, std::int64_t column)
      : to_(parameters), bias_(to_.bias ? Sums::of_floats(to_.bias + column) : Sums::all(0)) {}

  CPUTRAIN_DEVICE Sums store(const Sums& sums, std::int64_t at) const {
    const Sums made = result(sums, at);
    made.store(to_.values + at);
    return made;
  }

 protected:
  CPUTRAIN_DEVICE Sums result(Sums sums, std::int64_t at) const {
    sums += bias_;
    if (to_.added) sums += Sums::load(to_.added + at);
    return sums;
  }

 private:
  const BiasAndAdd<N>& to_;
  Sums bias_;
};

/// f(parameters of the epilogue of a slice's sums): the product's own if it is the only one, with
/// sums of columns where they are wanted, else they are stored as floats, for add_slices().
template <class Parameters, class F>
CPUTRAIN_DEVICE void with_epilogue(const GemmResult<Parameters>& result, int slice, int slices,
                                   const F& f) {
  using Plain = BiasAndAdd<typename Parameters::Numbers>;
  if constexpr (Parameters::kSums) {
    if (result.epilogue.sums.values) return f(result.epilogue);
  }
  float* const partials = result.partials + slice * result.numbers;
  const Plain& own = result.epilogue;
  if constexpr (std::is_same_v<Plain, BiasAndAdd<ExactNumbers>>) {
    // Both are of one type, so one piece of code does for them.
    const bool whole = slices == 1;
    f(Plain{whole ? own.values : partials, whole ? own.bias : nullptr,
            whole ? own.added : nullptr});
  } else if (slices > 1) {
    f(BiasAndAdd<ExactNumbers>{partials});
  } else {
    f(own);
  }
}

/// Writes the part of a block's tile, whose first row and column these are. All threads take part.
template <class Tile, class Parameters>
CPUTRAIN_DEVICE void write_sums(
    const Parameters& parameters, int first_row, int first_column, int rows,
    const float (&sums)[Tile::kWarps][Tile::kWarpRows][Tile::kWarpColumns + 8]) {
  if constexpr (Parameters::kSums) {
    using Own = Epilogue<Parameters>;
    constexpr int kLines = 32 * Own::Sums::kCount / Tile::kWarpColumns;
    static_assert(Tile::kThreads >= Tile::kColumns && 3 * kLines <= Tile::kWarpRows);
    __syncthreads();
    const int in_tile = thread_number(), column = first_column + in_tile;
    if (in_tile >= Tile::kColumns || column >= parameters.sums.channels) return;
    auto made = Own::OfColumn::none();
#pragma unroll
    for (int i = 0; i < Tile::kRows / Tile::kWarpRows; ++i) {
      const int count = min(rows - first_row - i * Tile::kWarpRows, Tile::kWarpRows);
      if (count <= 0) break;
      made.merge(Own::template of_lines<kLines>(
          sums[i * Tile::kWarpsAcross + in_tile / Tile::kWarpColumns], in_tile % Tile::kWarpColumns,
          count));
    }
    float* const to = parameters.sums.of(first_row / Tile::kRows) + column;
    to[0] = made.first().of[0];
    to[parameters.sums.channels] = made.second().of[0];
  }
}

}  // namespace cputrain::cuda
