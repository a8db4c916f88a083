#pragma once

#include "backends/cuda/device/tensor_core.h"
#include "backends/cuda/kernels/numbers.h"

/// What the lanes of a warp hold in registers, and how tensor cores multiply it. An instruction
/// (mma) takes 16 rows of A and 8 columns of B; it is 8 numbers deep where those are floats, 16
/// where they are bf16. tensor_core.h has the layout of lanes.
namespace cputrain::cuda {

/// kCount times 16 rows of A.
template <int kCount>
struct RowFragments {
  unsigned of[kCount][4];
};

/// kCount times 8 columns of B.
template <int kCount>
struct ColumnFragments {
  unsigned of[kCount][2];
};

/// Parts of the result.
template <int kRows, int kColumns>
struct Sums {
  float of[kRows][kColumns][4];

  CPUTRAIN_DEVICE Sums& operator+=(const Sums& other) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
#pragma unroll
        for (int r = 0; r < 4; ++r) of[i][j][r] += other.of[i][j][r];
      }
    }
    return *this;
  }
};

/// sums += a * b: numbers that were rounded when they were stored.
template <class N>
struct Product {
  static constexpr bool kSumsApart = false;
  static constexpr unsigned kOne = N::kNumbers == Numbers::bf16 ? 0x3f803f80u : 0x3f800000u;

  template <int kRows, int kColumns>
  CPUTRAIN_DEVICE static void add(Sums<kRows, kColumns>& sums, const RowFragments<kRows>& a,
                                  const ColumnFragments<kColumns>& b) {
    if constexpr (N::kNumbers == Numbers::bf16) {
      mma_bf16(sums.of, a.of, b.of);
    } else {
      mma_tf32(sums.of, a.of, b.of);
    }
  }
};

/// A float as two numbers whose sum it is, exactly: `big` is what is left of it without the 13
/// bits that TF32 lacks, `small` is those.
///
/// It is cut off instead of rounded since that is two instructions per number (rounding: 8 on sm_80
/// and sm_90), and the main loop waits for its instructions. `big` is a TF32 number, so it does not
/// matter what tensor cores do with further bits. Those of `small` they cut off (an H200 does, and
/// the emulated device); where they round them, results are nearer. No half is larger than the
/// number. That of an infinity or NaN has a `small` that is NaN, as are all sums it takes part in.
struct Tf32Halves {
  unsigned big, small;

  CPUTRAIN_DEVICE static Tf32Halves of(unsigned value) {
    const float big = tf32_value(value);
    return {__float_as_uint(big), __float_as_uint(__uint_as_float(value) - big)};
  }
};

/// Floats: three of the four products of their halves are summed, the smallest first. The fourth,
/// below 2^-20 of the product, is left out, and so are the two lowest bits of the smaller half,
/// which has up to 13 where a TF32 number has 11. All of that together is an error of 4e-7 (its
/// norm by that of the sums).
///
/// Tensor cores cut sums off where they should round, towards zero (an H200 does), so that an error
/// of up to 2^-23 of the sum is added with the same sign by every instruction: over a depth of
/// 25088 that were 9408 times, some 1e-4. Sums are kept apart therefore: those of one step (12
/// instructions in a row) begin at zero and are added by ordinary, rounding additions (Ootomo and
/// Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32
/// theoretical peak performance", 2022).
template <>
struct Product<ExactNumbers> {
  static constexpr bool kSumsApart = true;
  static constexpr unsigned kOne = 0x3f800000u;

  template <int kRows, int kColumns>
  CPUTRAIN_DEVICE static void add(Sums<kRows, kColumns>& sums, const RowFragments<kRows>& a,
                                  const ColumnFragments<kColumns>& b) {
    RowFragments<kRows> big_a, small_a;
    ColumnFragments<kColumns> big_b, small_b;
    split(a.of, big_a.of, small_a.of);
    split(b.of, big_b.of, small_b.of);
    mma_tf32(sums.of, small_a.of, big_b.of);
    mma_tf32(sums.of, big_a.of, small_b.of);
    mma_tf32(sums.of, big_a.of, big_b.of);
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
