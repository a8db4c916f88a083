#pragma once

#include "cuda/probes/loops/tile_loops.h"
#include "cuda/probes/loops/wgmma.h"

/// A main loop of wgmma on tiles that cp.async fills as it does those of mma.sync.
namespace cputrain::cuda::probes {

/// 8 lines of 128 bytes, after which the pattern of permuted chunks begins again.
inline constexpr int kPieceBytes = 8 * kStepBytes;
/// 64 rows of a step, or 64 depths of 64 rows.
inline constexpr int kPanelBytes = 64 * kStepBytes;

/// Operands as DepthInside has them: a line is a row, an instruction is two chunks of it deep.
struct RowByRow {
  static constexpr bool kTransposed = false;
  static constexpr unsigned kSwizzle = kSwizzle128;
  static constexpr PieceDistances kDistances{kChunkBytes, kPieceBytes};  // the first is not used
  static constexpr int kInstructionBytes = 2 * kChunkBytes;
};
/// bf16 as Panels has them: a line is 64 rows at one depth, an instruction is 16 lines deep.
struct DepthByDepth {
  static constexpr bool kTransposed = true;
  static constexpr unsigned kSwizzle = kSwizzle128;
  static constexpr PieceDistances kDistances{kPanelBytes, kPieceBytes};
  static constexpr int kInstructionBytes = 16 * kStepBytes;
};

/// A block's part of the result: each group of four warps has some of the rows, all columns.
template <int kRowsOfTile, int kColumnsOfTile, int kGroupsOfBlock, int kStepsAhead>
struct GroupTile {
  static constexpr int kRows = kRowsOfTile, kColumns = kColumnsOfTile;
  static constexpr int kGroups = kGroupsOfBlock, kThreads = 128 * kGroups;
  /// 64 rows each: of an instruction.
  static constexpr int kPanelsOfGroup = kRows / kGroups / 64;
  static_assert(kRows == 64 * kPanelsOfGroup * kGroups);
  /// A stage is free when the products of two steps ago are done: one more than mma.sync needs.
  static constexpr int kAhead = kStepsAhead, kStages = kAhead + 2;

  struct Stage {
    alignas(kPieceBytes) unsigned char a[kRows * kStepBytes];
    alignas(kPieceBytes) unsigned char b[kColumns * kStepBytes];
  };
};

/// A thread's sums of its group's part of a tile.
template <class N, class Tile, class FormOfA, class FormOfB>
class GroupProduct {
 public:
  /// Begins the products of a step.
  CPUTRAIN_DEVICE void begin(const typename Tile::Stage& stage) {
    const unsigned a = shared_address(stage.a) + group_ * Tile::kPanelsOfGroup * kPanelBytes;
    const unsigned b = shared_address(stage.b);
    begin_products();
#pragma unroll
    for (int k = 0; k < kInstructionsOfStep; ++k) {
      const std::uint64_t of_b = descriptor<FormOfB>(b + k * FormOfB::kInstructionBytes);
#pragma unroll
      for (int i = 0; i < Tile::kPanelsOfGroup; ++i) {
        begin_product<N, Tile::kColumns, FormOfA::kTransposed, FormOfB::kTransposed>(
            sums_[i], descriptor<FormOfA>(a + i * kPanelBytes + k * FormOfA::kInstructionBytes),
            of_b);
      }
    }
    commit_products();
  }

  /// Writes the tile, row by row.
  CPUTRAIN_DEVICE void store(float* tile) const {
    const int thread = thread_number() % 128;
    const int row = 64 * Tile::kPanelsOfGroup * group_ + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
    for (int i = 0; i < Tile::kPanelsOfGroup; ++i) {
#pragma unroll
      for (int n = 0; n < Tile::kColumns / 2; n += 2) {
        float* const to = tile + (row + 64 * i + n % 4 * 4) * Tile::kColumns;
        *reinterpret_cast<float2*>(to + n / 4 * 8 + thread % 4 * 2) =
            make_float2(sums_[i][n], sums_[i][n + 1]);
      }
    }
  }

 private:
  template <class Form>
  CPUTRAIN_DEVICE static std::uint64_t descriptor(unsigned address) {
    return wgmma_descriptor(address, Form::kDistances, Form::kSwizzle);
  }
  /// The same for all of a warp, which the shuffle lets the compiler know.
  CPUTRAIN_DEVICE static int group_of_thread() {
    return Tile::kGroups == 1 ? 0 : __shfl_sync(~0u, thread_number() / 128, 0);
  }

  int group_ = group_of_thread();
  float sums_[Tile::kPanelsOfGroup][Tile::kColumns / 2] = {};
};

/// A loop of wgmma, in registers of a block.
template <class N, class Tile, class Iterator, class FormOfA, class FormOfB>
class GroupLoop {
 public:
  using Memory = LoopMemory<Tile, Iterator>;
  static constexpr std::size_t kMemoryBytes = sizeof(Memory) + kPieceBytes;
  /// On a boundary that the launch does not promise.
  CPUTRAIN_DEVICE static Memory& memory() {
    auto* const begin = &dynamic_shared<unsigned char>();
    const unsigned missing = (0u - shared_address(begin)) % kPieceBytes;
    return *reinterpret_cast<Memory*>(begin + missing);
  }

  template <Parts kParts>
  CPUTRAIN_DEVICE void run(Memory& memory, Iterator& iterator, int steps) {
    if constexpr (kParts == Parts::all) {
      copy_and_multiply(memory, iterator, steps);
    } else {
      static_assert(kParts == Parts::loads_and_products, "wgmma does both");
      fill_stages<Tile::kStages>(memory, iterator);
      fence_copies();
      __syncthreads();
      for_stages<Tile::kStages>(steps, [&](int stage) {
        product_.begin(memory.loop.stages[stage]);
        wait_for_products<1>();
      });
    }
    wait_for_products<0>();
  }

  CPUTRAIN_DEVICE void store(float* tile) const { product_.store(tile); }

 private:
  CPUTRAIN_DEVICE static int next(int stage) { return stage + 1 < Tile::kStages ? stage + 1 : 0; }

  /// As multiply() of gemm.h. Products of a step are on their way while copies of a later one
  /// begin.
  CPUTRAIN_DEVICE void copy_and_multiply(Memory& memory, Iterator& iterator, int steps) {
    auto& stages = memory.loop.stages;
    const auto precompute = [&](int first) {
      iterator.precompute(memory.loop.table, min(steps - first, Iterator::kSteps));
      __syncthreads();
    };
    precompute(0);
#pragma unroll
    for (int stage = 0; stage < Tile::kAhead; ++stage) {
      if (stage < steps) iterator.copy(stages[stage]);
      commit_copies();
    }
    int step = 0, precomputed = Iterator::kSteps, stage = 0, free_stage = Tile::kAhead;
    while (true) {
      const int end = precomputed < steps ? precomputed - Tile::kAhead : steps;
#pragma unroll 1
      for (; step < end; ++step) {
        wait_for_copies<Tile::kAhead - 1>();
        fence_copies();
        // Behind it the step's tiles are there for all, and all have waited for the products of two
        // steps ago.
        __syncthreads();
        product_.begin(stages[stage]);
        if (step + Tile::kAhead < steps) iterator.copy(stages[free_stage]);
        commit_copies();
        wait_for_products<1>();
        stage = next(stage);
        free_stage = next(free_stage);
      }
      if (step == steps) break;
      __syncthreads();
      precompute(precomputed);
      precomputed += Iterator::kSteps;
    }
    wait_for_copies<0>();
  }

  GroupProduct<N, Tile, FormOfA, FormOfB> product_;
};

}  // namespace cputrain::cuda::probes
