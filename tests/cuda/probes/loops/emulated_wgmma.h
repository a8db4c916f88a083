#pragma once

/// The instructions of wgmma.h, which says what they mean, on the emulated device: by the words of
/// the PTX ISA for descriptors and by CuTe's table for sums, and nothing of how tiles are laid out.

#include "emulated/emulator.h"

namespace cputrain::cuda::probes {

/// When a product reads its operands: between those two times a device may do it at any.
enum class Reads {
  at_once,  ///< when it begins
  late      ///< when it is waited for
};
void emulate_wgmma(Reads);

/// A thread's part of a product.
struct GroupPart {
  float* sums;  ///< columns / 2
  std::uint64_t of_a, of_b;
  int columns;
  bool bf16, transposed_a, transposed_b;
};
void begin_part(const GroupPart&, emulated::Place);
void begin_parts(emulated::Place);
void commit_parts();
void wait_for_parts(unsigned left, emulated::Place);
void fence_parts();

/// Where shared memory begins is address 0.
inline unsigned shared_address(const void* p) {
  const void* const begin = emulated::dynamic_storage();
  return static_cast<unsigned>(static_cast<const char*>(p) - static_cast<const char*>(begin));
}

inline void fence_copies() { fence_parts(); }
inline void begin_products(emulated::Place at = emulated::Place::current()) { begin_parts(at); }
inline void commit_products() { commit_parts(); }
template <int kLeft>
void wait_for_products(emulated::Place at = emulated::Place::current()) {
  wait_for_parts(kLeft, at);
}

template <class N, int kColumns, bool kTransposedA, bool kTransposedB>
void begin_product(float (&sums)[kColumns / 2], std::uint64_t of_a, std::uint64_t of_b,
                   emulated::Place at = emulated::Place::current()) {
  constexpr bool kBf16 = N::kNumbers == Numbers::bf16;
  begin_part({sums, of_a, of_b, kColumns, kBf16, kTransposedA, kTransposedB}, at);
}

}  // namespace cputrain::cuda::probes
