#pragma once

#include "cuda/probes/loops/wgmma_loop.h"

/// Operands that are copied from plain matrices of bf16, of which rows lie one behind the other or
/// depth by depth, as maps and weights do for gradients.
namespace cputrain::cuda::probes {

/// A tile whose rows lie side by side, 64 of them in a panel of 128 bytes a depth. Panels are what
/// wgmma reads; those of 64 rows are RowsInside.
template <int kRows>
struct Panels {
  static constexpr int kChunks = kRows / kNumbersOfChunk<Bf16Numbers>;

  CPUTRAIN_DEVICE static int offset(int depth, int chunk) {
    return chunk / kChunksOfStep * kPanelBytes + depth * kStepBytes +
           (chunk % kChunksOfStep ^ depth % kChunksOfStep) * kChunkBytes;
  }

  template <int kThreads>
  struct Share {
    static constexpr int kDepthsAtOnce = kThreads / kChunks;
    static constexpr int kCopies = kDepthOfStep<Bf16Numbers> / kDepthsAtOnce;
    static_assert(kThreads % kChunks == 0 && kDepthsAtOnce % kChunksOfStep == 0);

    int depth = thread_number() / kChunks, chunk = thread_number() % kChunks;

    CPUTRAIN_DEVICE void copy(unsigned char* tile, int i, const void* from, bool inside) const {
      copy_to_shared(tile + offset(depth, chunk) + i * kDepthsAtOnce * kStepBytes, from, inside);
    }
  };
};

/// A thread's copies of one operand. The matrix is kStepsOfRows steps deep, and begins again then.
template <class Layout, int kRows, int kThreads>
class MatrixCopies {
 public:
  CPUTRAIN_DEVICE explicit MatrixCopies(const void* matrix) : matrix_(matrix) {
    if constexpr (kTransposed) {
      at_ = share_.depth * kPitch + share_.chunk;
    } else {
      at_ = share_.row * kPitch + share_.chunk;
    }
  }

  CPUTRAIN_DEVICE void copy(unsigned char* tile, int step) {
#pragma unroll
    for (int i = 0; i < Share::kCopies; ++i) {
      share_.copy(tile, i, chunk_of(matrix_, at_ + step * kOfStep + i * kBetween), true);
    }
  }

 private:
  using Share = typename Layout::template Share<kThreads>;
  static constexpr bool kTransposed = requires { Share::kDepthsAtOnce; };
  static constexpr int kPitch =
      kTransposed ? kRows / kNumbersOfChunk<Bf16Numbers> : kStepsOfRows * kChunksOfStep;
  static constexpr int kOfStep = kTransposed ? kDepthOfStep<Bf16Numbers> * kPitch : kChunksOfStep;
  static constexpr int between() {
    if constexpr (kTransposed) {
      return Share::kDepthsAtOnce * kPitch;
    } else {
      return Share::kRowsAtOnce * kPitch;
    }
  }
  static constexpr int kBetween = between();

  const void* matrix_;
  Share share_;
  int at_;
};

struct MatrixProduct {
  const void *a, *b;
};

template <class Tile, class LayoutOfA, class LayoutOfB>
class MatrixIterator {
 public:
  using A = LayoutOfA;
  using B = LayoutOfB;
  static constexpr int kSteps = 1 << 30;  ///< there is nothing to precompute
  struct Table {};

  CPUTRAIN_DEVICE MatrixIterator(const MatrixProduct& product, const TileOffset&)
      : a_(product.a), b_(product.b) {}

  CPUTRAIN_DEVICE void precompute(Table&, int) {}
  CPUTRAIN_DEVICE void copy(typename Tile::Stage& stage) {
    a_.copy(stage.a, step_);
    b_.copy(stage.b, step_);
    step_ = (step_ + 1) % kStepsOfRows;
  }

 private:
  MatrixCopies<A, Tile::kRows, Tile::kThreads> a_;
  MatrixCopies<B, Tile::kColumns, Tile::kThreads> b_;
  int step_ = 0;
};

}  // namespace cputrain::cuda::probes
