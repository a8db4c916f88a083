#pragma once

/// Products of a group of four warps (wgmma), which read both operands from shared memory: sm_90a.
/// A descriptor says where an operand lies, in pieces of 8 lines of 128 bytes whose chunks are
/// permuted within the line (swizzle 128B). The PTX ISA's "asynchronous warpgroup level matrix
/// instructions" have all of this.
#include <cstdint>

#include "backends/cuda/device/tensor_core.h"
#include "backends/cuda/kernels/numbers.h"

namespace cputrain::cuda::probes {

/// The distances between an operand's pieces, in bytes.
struct PieceDistances {
  unsigned leading, stride;
};

/// Three sizes in 16 bytes, 14 bits each, and the kind of swizzle.
CPUTRAIN_DEVICE std::uint64_t wgmma_descriptor(unsigned address, PieceDistances distances,
                                               unsigned swizzle) {
  const auto field = [](unsigned bytes) { return std::uint64_t{bytes >> 4 & 0x3fffu}; };
  return field(address) | field(distances.leading) << 16 | field(distances.stride) << 32 |
         std::uint64_t{swizzle} << 62;
}

inline constexpr unsigned kSwizzle128 = 1;

/// Numbers along the depth that one instruction multiplies.
template <class N>
inline constexpr int kDepthOfWgmma = 2 * kNumbersOfChunk<N>;

}  // namespace cputrain::cuda::probes

#ifdef __CUDACC__

namespace cputrain::cuda::probes {

// Other architectures than sm_90a have none of what follows. Kernels for them never run.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// Has wgmma see what cp.async of this thread brought. A barrier behind it tells the others.
CPUTRAIN_DEVICE void fence_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/// Before the first product, and wherever sums were touched by others.
CPUTRAIN_DEVICE void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/// Ends a group of products.
CPUTRAIN_DEVICE void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until at most `kLeft` groups are on their way.
template <int kLeft>
CPUTRAIN_DEVICE void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}

// Registers %0 to %31, %63 or %127 in PTX, and what g++ calls constraints of them.
#define TEN(t) \
  "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9,"
#define TENS_TO_29 TEN() TEN(1) TEN(2)
#define TENS_TO_59 TENS_TO_29 TEN(3) TEN(4) TEN(5)
#define TENS_TO_119 TENS_TO_59 TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11)
#define NUMBERS_32 TENS_TO_29 "%30,%31"
#define NUMBERS_64 TENS_TO_59 "%60,%61,%62,%63"
#define NUMBERS_128 TENS_TO_119 "%120,%121,%122,%123,%124,%125,%126,%127"
#define FOUR(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
#define SUMS_32 SIXTEEN(0), SIXTEEN(16)
#define SUMS_64 SUMS_32, SIXTEEN(32), SIXTEEN(48)
#define SUMS_128 SUMS_64, SIXTEEN(64), SIXTEEN(80), SIXTEEN(96), SIXTEEN(112)

// sums += a * b, which are the two descriptors; the ones are: add to the sums, take a and b as they
// are, not their negatives. Of bf16 either may lie depth by depth instead of row by row.
#define WGMMA_OF_TF32(columns, registers, a, b)                                \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns                    \
               "k8.f32.tf32.tf32 {" NUMBERS_##registers "}," a "," b ",1,1,1;" \
               : SUMS_##registers                                              \
               : "l"(of_a), "l"(of_b))
#define WGMMA_OF_BF16(columns, registers, a, b, turn_a, turn_b)                                   \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns                                       \
               "k16.f32.bf16.bf16 {" NUMBERS_##registers "}," a "," b ",1,1,1," turn_a "," turn_b \
                                                         ";"                                      \
               : SUMS_##registers                                                                 \
               : "l"(of_a), "l"(of_b), "n"(kTransposedA), "n"(kTransposedB))

/// Begins sums += A * B, 64 x kColumns, of operands that the descriptors name. Thread t of the
/// group has in sums[4 * j + r] row 16 * (t / 32) + t % 32 / 4 + 8 * (r / 2) and column 8 * j + 2 *
/// (t % 4) + r % 2. kTransposed: an operand lies depth by depth.
template <class N, int kColumns, bool kTransposedA, bool kTransposedB>
CPUTRAIN_DEVICE void begin_product(float (&sums)[kColumns / 2], std::uint64_t of_a,
                                   std::uint64_t of_b) {
  static_assert(kColumns == 64 || kColumns == 128 || kColumns == 256);
  if constexpr (N::kNumbers == Numbers::bf16) {
    if constexpr (kColumns == 64) WGMMA_OF_BF16(64, 32, "%32", "%33", "%34", "%35");
    if constexpr (kColumns == 128) WGMMA_OF_BF16(128, 64, "%64", "%65", "%66", "%67");
    if constexpr (kColumns == 256) WGMMA_OF_BF16(256, 128, "%128", "%129", "%130", "%131");
  } else {
    static_assert(!kTransposedA && !kTransposedB, "only numbers of 16 bits may lie depth by depth");
    if constexpr (kColumns == 64) WGMMA_OF_TF32(64, 32, "%32", "%33");
    if constexpr (kColumns == 128) WGMMA_OF_TF32(128, 64, "%64", "%65");
    if constexpr (kColumns == 256) WGMMA_OF_TF32(256, 128, "%128", "%129");
  }
}

#undef TEN
#undef TENS_TO_29
#undef TENS_TO_59
#undef TENS_TO_119
#undef NUMBERS_32
#undef NUMBERS_64
#undef NUMBERS_128
#undef FOUR
#undef SIXTEEN
#undef SUMS_32
#undef SUMS_64
#undef SUMS_128
#undef WGMMA_OF_TF32
#undef WGMMA_OF_BF16

#else

CPUTRAIN_DEVICE void fence_copies() { __trap(); }
CPUTRAIN_DEVICE void begin_products() {}
CPUTRAIN_DEVICE void commit_products() {}
template <int kLeft>
CPUTRAIN_DEVICE void wait_for_products() {}
template <class N, int kColumns, bool kTransposedA, bool kTransposedB>
CPUTRAIN_DEVICE void begin_product(float (&)[kColumns / 2], std::uint64_t, std::uint64_t) {}

#endif

}  // namespace cputrain::cuda::probes

#else

#include "cuda/probes/loops/emulated_wgmma.h"

#endif
