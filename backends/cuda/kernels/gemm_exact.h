#pragma once

#include "backends/cuda/kernels/gemm_tiles.h"
#include "backends/cuda/kernels/tf32_halves.h"

namespace cputrain::cuda {

/// Precision `exact`: floats. Three of the four products of their halves (tf32_halves.h) are
/// summed, the smallest first. The fourth, below 2^-20 of the product, is left out, and so are the
/// two lowest bits of the smaller half, which has up to 13 where a TF32 number has 11. All of that
/// together is 4e-7 of the sums (norm of the errors by norm of the sums).
///
/// Tensor cores cut sums off where they should round, towards zero (an H200 does), so that an error
/// of up to 2^-23 of the sum is added with the same sign by every instruction: over a depth of
/// 25088 that were 9408 times, some 1e-4. Sums are kept apart therefore: those of one step (12
/// instructions in a row) begin at zero and are added by ordinary, rounding additions (Ootomo and
/// Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32
/// theoretical peak performance", 2022).
struct Exact {
  using Element = float;
  static constexpr int kChunk = kChunkBytes / static_cast<int>(sizeof(float));
  static constexpr int kDepth = kStepBytes / static_cast<int>(sizeof(float));
  static constexpr bool kSumsApart = true;

  /// Of four depths and eight rows at once, 8 numbers between depths: 32 banks.
  template <class Layout, int kCount>
  CPUTRAIN_DEVICE static void read_rows(unsigned (&fragments)[kCount][4], const float* tile,
                                        int first, int instruction, int lane) {
    const int row = first + lane / 4, depth = instruction * 8 + lane % 4;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int at = (depth + r / 2 * 4) * Layout::kWidth + row + 16 * i + r % 2 * 8;
        fragments[i][r] = __float_as_uint(tile[at]);
      }
    }
  }

  template <class Layout, int kCount>
  CPUTRAIN_DEVICE static void read_columns(unsigned (&fragments)[kCount][2], const float* tile,
                                           int first, int instruction, int lane) {
    const int column = first + lane / 4, depth = instruction * 8 + lane % 4;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int at = (depth + r * 4) * Layout::kWidth + column + 8 * j;
        fragments[j][r] = __float_as_uint(tile[at]);
      }
    }
  }

  /// sums += a * b, of one instruction's depth.
  template <int kRows, int kColumns>
  CPUTRAIN_DEVICE static void multiply(float (&sums)[kRows][kColumns][4],
                                       const unsigned (&a)[kRows][4],
                                       const unsigned (&b)[kColumns][2]) {
    unsigned big_a[kRows][4], small_a[kRows][4], big_b[kColumns][2], small_b[kColumns][2];
    split(a, big_a, small_a);
    split(b, big_b, small_b);
    mma_tf32(sums, small_a, big_b);
    mma_tf32(sums, big_a, small_b);
    mma_tf32(sums, big_a, big_b);
  }

 private:
  template <int kCount, int kRegisters>
  CPUTRAIN_DEVICE static void split(const unsigned (&values)[kCount][kRegisters],
                                    unsigned (&big)[kCount][kRegisters],
                                    unsigned (&small)[kCount][kRegisters]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int r = 0; r < kRegisters; ++r) {
        const Tf32Halves halves = Tf32Halves::of(values[i][r]);
        big[i][r] = halves.big;
        small[i][r] = halves.small;
      }
    }
  }
};

}  // namespace cputrain::cuda
