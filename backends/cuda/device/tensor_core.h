#pragma once

/// The instructions that C++ has no words for. Fragments are laid out as in the PTX ISA:
/// mma.m16n8k16 of bf16, mma.m16n8k8 of TF32, ldmatrix.
#include "backends/cuda/device/language.h"

#ifdef __CUDACC__

namespace cputrain::cuda {

/// acc[i][j] += a[i] * b[j], each 16 x 8 x 8. Lane l has of a[i] the elements (row, k) = (g, t), (g
/// + 8, t), (g, t + 4), (g + 8, t + 4) where g = l / 4, t = l % 4; of b[j] (k, column) = (t, g), (t
/// + 4, g); of acc[i][j] (row, column) = (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
template <int kRows, int kColumns>
CPUTRAIN_DEVICE void mma_tf32(float (&acc)[kRows][kColumns][4], const unsigned (&a)[kRows][4],
                              const unsigned (&b)[kColumns][2]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
          "{%0,%1,%2,%3};"
          : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
          : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
    }
  }
}

/// The same, each 16 x 8 x 16, of bf16 in pairs: a[i] holds k = 2t, 2t + 1 where TF32 has t, and 2t
/// + 8, 2t + 9 where it has t + 4.
template <int kRows, int kColumns>
CPUTRAIN_DEVICE void mma_bf16(float (&acc)[kRows][kColumns][4], const unsigned (&a)[kRows][4],
                              const unsigned (&b)[kColumns][2]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
          "{%0,%1,%2,%3};"
          : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
          : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
    }
  }
}

CPUTRAIN_DEVICE unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

/// Four 8 x 8 matrices of 16-bit numbers, or 8 x 4 of 32 bits; lane l names row l % 8 of matrix l /
/// 8, 16 bytes on a 16-byte boundary of shared memory, and gets of each matrix the pair (or the
/// number) l % 4 of row l / 4.
CPUTRAIN_DEVICE void load_matrices(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

/// The same of matrices of 16-bit numbers, transposed.
CPUTRAIN_DEVICE void load_matrices_transposed(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

/// Begins to copy 16 bytes from global to shared memory, or to fill them with zeros where `valid`
/// is false: `src`, on a 16-byte boundary, is then any address and is not read.
CPUTRAIN_DEVICE void copy_to_shared(void* dst, const void* src, bool valid) {
  asm volatile(
      "{.reg .pred ignored;\n"
      "setp.eq.u32 ignored, %2, 0;\n"
      "cp.async.cg.shared.global [%0], [%1], 16, ignored;}" ::"r"(shared_address(dst)),
      "l"(src), "r"(unsigned{valid})
      : "memory");
}
/// Ends a group of this thread's copies; a group may be empty.
CPUTRAIN_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Until at most `kLeft` of this thread's groups are on their way. Other threads see what arrived
/// behind a barrier only.
template <int kLeft>
CPUTRAIN_DEVICE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

/// Has a number stay in a register, where the compiler would rather compute it anew each time.
CPUTRAIN_DEVICE void keep(int& number) { asm volatile("" : "+r"(number)); }

/// A float's nearest TF32 number (8 bits of exponent, 10 of mantissa; ties away from zero).
CPUTRAIN_DEVICE unsigned to_tf32(float f) {
  unsigned r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(f));
  return r;
}

/// The bf16 numbers nearest to two floats (ties to even), `low` in the lower half. NaN stays NaN.
CPUTRAIN_DEVICE unsigned bf16_pair(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

/// The larger number, or NaN where one is NaN.
CPUTRAIN_DEVICE float larger_or_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

/// What tensor cores take a TF32 number for. Its lower 13 bits are not used: they may hold
/// anything.
CPUTRAIN_DEVICE float tf32_value(unsigned r) { return __uint_as_float(r & 0xffffe000u); }

}  // namespace cputrain::cuda

#else

#include "emulated/tensor_core.h"

#endif
