#pragma once

/// The instructions of backends/cuda/device/tensor_core.h, which says what they mean, on the
/// emulated device. A product of a whole warp's tile is one meeting of its threads.

#include "emulated/language.h"

namespace cputrain::cuda {

template <int kRows, int kColumns>
void mma_tf32(float (&acc)[kRows][kColumns][4], const unsigned (&a)[kRows][4],
              const unsigned (&b)[kColumns][2], emulated::Place at = emulated::Place::current()) {
  emulated::WarpProduct mine{&acc[0][0][0], &a[0][0], &b[0][0], kRows, kColumns};
  emulated::product_of_tf32(mine, at);
}

template <int kRows, int kColumns>
void mma_bf16(float (&acc)[kRows][kColumns][4], const unsigned (&a)[kRows][4],
              const unsigned (&b)[kColumns][2], emulated::Place at = emulated::Place::current()) {
  emulated::WarpProduct mine{&acc[0][0][0], &a[0][0], &b[0][0], kRows, kColumns};
  emulated::product_of_bf16(mine, at);
}

inline void load_matrices(unsigned (&r)[4], const void* row,
                          emulated::Place at = emulated::Place::current()) {
  emulated::matrices_to_registers(r, row, false, at);
}
inline void load_matrices_transposed(unsigned (&r)[4], const void* row,
                                     emulated::Place at = emulated::Place::current()) {
  emulated::matrices_to_registers(r, row, true, at);
}

inline void copy_to_shared(void* dst, const void* src, bool valid,
                           emulated::Place at = emulated::Place::current()) {
  emulated::begin_copy(dst, src, valid, at);
}
inline void commit_copies() { emulated::commit_group(); }
template <int kLeft>
void wait_for_copies(emulated::Place at = emulated::Place::current()) {
  emulated::wait_for_groups(kLeft, at);
}

inline void keep(int&) {}
inline float larger_or_nan(float a, float b) { return a > b || a != a ? a : b; }

/// Half of the last place that stays is added to the magnitude. What a device leaves in the lower
/// 13 bits nobody promises: here it is what was carried there.
inline unsigned to_tf32(float f) {
  const unsigned bits = std::bit_cast<unsigned>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu;
  return bits + 0x1000u;
}
inline float tf32_value(unsigned r) { return std::bit_cast<float>(r & 0xffffe000u); }

/// Half of the last place that stays, or a little less where that place is even, is carried there.
inline unsigned to_bf16(float f) {
  const unsigned bits = std::bit_cast<unsigned>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
  return (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}
inline unsigned bf16_pair(float low, float high) { return to_bf16(low) | to_bf16(high) << 16; }

}  // namespace cputrain::cuda
