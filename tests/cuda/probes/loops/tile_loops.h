#pragma once

#include "backends/cuda/kernels/products/convolution_windows.h"

/// The main loop of matrix products, whole and in parts: tiles, copies and instructions are the
/// product's own (gemm.h), so their ratio is, too.
namespace cputrain::cuda::probes {

/// What a loop does of all that a product's does.
enum class Parts {
  products,            ///< mma.sync alone, from the same registers always
  loads,               ///< ldmatrix alone, from stages that stay as they are
  loads_and_products,  ///< both
  loads_and_copies,    ///< what moves bytes of shared memory
  all
};

/// Steps after which rows of A begin again.
inline constexpr int kStepsOfRows = 4;

/// A product whose rows are so short that L2 holds those of all blocks: a convolution, all taps of
/// which are on the same position. Columns are as long as the product is deep.
template <class N>
WindowProduct product_of_short_rows(int rows, int columns, int steps, const void* a,
                                    const void* b) {
  const MapShape position{1, 1, kStepsOfRows * kDepthOfStep<N>};
  const Windows windows{ChunkMap::of<N>(position, a), rows, {Divisor(1), Divisor(1)}, 0, 0, 1};
  const Taps taps{pieces(steps, kStepsOfRows), Divisor(1), Divisor(windows.map.chunks), 0};
  return {rows, columns, steps * kDepthOfStep<N>, windows, taps, b};
}

/// Instructions of a block's step, and bytes of shared memory that it reads and writes.
struct StepCost {
  int products, loads, bytes_loaded, bytes_copied;
};
template <class Tile>
constexpr StepCost cost_of_step() {
  constexpr int kRowsOfLoad = 16;
  constexpr int kLoads = (Tile::kWarpRows + Tile::kWarpColumns) / kRowsOfLoad;
  constexpr int kProducts = Tile::kWarpRows / 16 * (Tile::kWarpColumns / 8);
  return {Tile::kWarps * kProducts * kInstructionsOfStep,
          Tile::kWarps * kLoads * kInstructionsOfStep,
          Tile::kWarps * kLoads * kRowsOfLoad * kStepBytes,
          (Tile::kRows + Tile::kColumns) * kStepBytes};
}

template <class Tile, class Iterator>
struct LoopMemory {
  struct {
    typename Tile::Stage stages[Tile::kStages];
    typename Iterator::Table table;
  } loop;
};

/// The first steps' operands, for this thread; others' are there behind a barrier.
template <int kStages, class Memory, class Iterator>
CPUTRAIN_DEVICE void fill_stages(Memory& memory, Iterator& iterator) {
  iterator.precompute(memory.loop.table, kStages);
  __syncthreads();
#pragma unroll
  for (int stage = 0; stage < kStages; ++stage) iterator.copy(memory.loop.stages[stage]);
  commit_copies();
  wait_for_copies<0>();
}

/// Calls f(stage) for the stages in turns.
template <int kStages, class F>
CPUTRAIN_DEVICE void for_stages(int steps, const F& f) {
  int stage = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    f(stage);
    stage = stage + 1 < kStages ? stage + 1 : 0;
  }
}

/// Reads what WarpProduct reads. All of it is looked at, since the compiler leaves out loads that
/// nobody needs.
template <class Tile, class Iterator>
class WarpReader {
 public:
  using A = RowFragments<Tile::kWarpRows / 16>;
  using B = ColumnFragments<Tile::kWarpColumns / 8>;

  CPUTRAIN_DEVICE explicit WarpReader(const WarpOffset& warp)
      : rows_(warp.row, warp.lane), columns_(warp.column, warp.lane) {}

  CPUTRAIN_DEVICE void read(A& a, B& b, const typename Tile::Stage& stage, int instruction) const {
    rows_.read(a, stage.a, instruction);
    columns_.read(b, stage.b, instruction);
  }
  CPUTRAIN_DEVICE void add(const typename Tile::Stage& stage) {
#pragma unroll
    for (int instruction = 0; instruction < kInstructionsOfStep; ++instruction) {
      A a;
      B b;
      read(a, b, stage, instruction);
#pragma unroll
      for (const auto& fragment : a.of) {
#pragma unroll
        for (int r = 0; r < 4; ++r) seen_[r] ^= fragment[r];
      }
#pragma unroll
      for (int j = 0; j < Tile::kWarpColumns / 8; ++j) {
#pragma unroll
        for (int r = 0; r < 2; ++r) seen_[j % 2 * 2 + r] ^= b.of[j][r];
      }
    }
  }
  CPUTRAIN_DEVICE unsigned seen() const { return seen_[0] ^ seen_[1] ^ seen_[2] ^ seen_[3]; }

 private:
  typename Iterator::A::Rows rows_;
  typename Iterator::B::Columns columns_;
  unsigned seen_[4] = {};
};

/// A loop of mma.sync.
template <class N, class Tile, class Iterator>
class WarpLoop {
 public:
  using Memory = LoopMemory<Tile, Iterator>;
  static constexpr std::size_t kMemoryBytes = sizeof(Memory);
  CPUTRAIN_DEVICE static Memory& memory() { return dynamic_shared<Memory>(); }

  template <Parts kParts>
  CPUTRAIN_DEVICE void run(Memory& memory, Iterator& iterator, int steps) {
    if constexpr (kParts == Parts::all) {
      multiply<Tile>(memory, iterator, steps, product_, nothing_);
    } else if constexpr (kParts == Parts::loads_and_copies) {
      multiply<Tile>(memory, iterator, steps, reader_, nothing_);
    } else {
      fill_stages<Tile::kStages>(memory, iterator);
      __syncthreads();
      run_alone<kParts>(memory.loop.stages, steps);
    }
    if constexpr (kParts == Parts::loads || kParts == Parts::loads_and_copies) {
      product_.sums.of[0][0][0] = __uint_as_float(reader_.seen());
    }
  }

  /// Writes the tile, row by row.
  CPUTRAIN_DEVICE void store(float* tile) const {
#pragma unroll
    for (int i = 0; i < Tile::kWarpRows / 16; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = warp_.row + Iterator::A::Order::row(i, half, warp_.lane);
        Iterator::B::Order::put(tile + row * Tile::kColumns + warp_.column, product_.sums.of[i],
                                half, warp_.lane);
      }
    }
  }

 private:
  struct Nothing {
    CPUTRAIN_DEVICE void add(const unsigned char*) {}
  };

  template <Parts kParts>
  CPUTRAIN_DEVICE void run_alone(const typename Tile::Stage (&stages)[Tile::kStages], int steps) {
    if constexpr (kParts == Parts::products) {
      typename WarpReader<Tile, Iterator>::A a;
      typename WarpReader<Tile, Iterator>::B b;
      reader_.read(a, b, stages[0], 0);
      for_stages<1>(steps, [&](int) {
#pragma unroll
        for (int i = 0; i < kInstructionsOfStep; ++i) Product<N>::add(product_.sums, a, b);
      });
    } else if constexpr (kParts == Parts::loads) {
      for_stages<Tile::kStages>(steps, [&](int stage) { reader_.add(stages[stage]); });
    } else {
      for_stages<Tile::kStages>(steps, [&](int stage) { product_.add(stages[stage]); });
    }
  }

  WarpOffset warp_ = WarpOffset::of_thread<Tile>();
  WarpReader<Tile, Iterator> reader_{warp_};
  WarpProduct<N, Tile, Iterator> product_{warp_};
  Nothing nothing_;
};

/// All that a block does: the tile of A is its own or that of all blocks. The calls come before the
/// loop and behind it.
template <class Loop, class Tile, Parts kParts, class Iterator, class Problem, class Before,
          class Behind>
CPUTRAIN_DEVICE void run_block(const Problem& problem, bool own_rows, int steps, float* tiles,
                               const Before& before, const Behind& behind) {
  const TileOffset tile{own_rows ? block_number() * Tile::kRows : 0, 0, 0, 0, steps};
  Iterator iterator(problem, tile);
  Loop loop;
  before();
  loop.template run<kParts>(Loop::memory(), iterator, steps);
  behind();
  loop.store(tiles + offset_of_row(block_number(), Tile::kRows * Tile::kColumns));
}

}  // namespace cputrain::cuda::probes
