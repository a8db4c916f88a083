#pragma once

#include <bit>
#include <cstdint>

namespace cputrain::cpu {

/// A number of a 16-bit map: the upper half of a float.
struct Bf16 {
  std::uint16_t bits;
};

/// What follows is always inlined, since it is compiled for several instruction sets. Loops over
/// it become vectors of shifts, which wait for memory as the instructions of AVX512-BF16 would.
namespace kernels {

[[gnu::always_inline]] inline float to_float(float number) { return number; }
[[gnu::always_inline]] inline float to_float(Bf16 number) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(number.bits) << 16);
}

/// The 16 bits of the number nearest to a float of these bits, ties to even; NaN stays NaN.
[[gnu::always_inline]] inline std::uint32_t rounded_bits(std::uint32_t bits) {
  const std::uint32_t nearest = bits + 0x7fffU + (bits >> 16 & 1U);
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  return (is_nan ? bits | 0x400000U : nearest) >> 16;
}

[[gnu::always_inline]] inline void set(float& to, float number) { to = number; }
[[gnu::always_inline]] inline void set(Bf16& to, float number) {
  to.bits = static_cast<std::uint16_t>(rounded_bits(std::bit_cast<std::uint32_t>(number)));
}

}  // namespace kernels
}  // namespace cputrain::cpu
