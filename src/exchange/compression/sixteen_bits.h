#pragma once

#include <bit>
#include <cstdint>

/// Floats in 16 bits, rounded to the nearest, ties to even. NaN stays NaN (its payload is not
/// kept), infinity infinity. Loops over them are vectorised.
namespace cputrain::exchange {

/// yes or no, by masks: compilers make branches of a choice between sums of floats, which may trap.
inline std::uint32_t choose(bool condition, std::uint32_t yes, std::uint32_t no) {
  return no ^ ((yes ^ no) & (0u - static_cast<std::uint32_t>(condition)));
}

/// IEEE binary16: 5 bits of exponent, 10 of fraction. What is too large becomes infinity.
inline std::uint16_t to_fp16(float value) {
  constexpr std::uint32_t kInfinity = 0x7f800000, kTooLarge = 0x47800000;  // 65536
  constexpr std::uint32_t kSmallestNormal = 0x38800000, kRebias = 0x38000000;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t size = bits & 0x7fffffff;
  const std::uint32_t normal = (size - kRebias + 0xfff + (size >> 13 & 1)) >> 13;
  // Added to 0.5, a float's last bit is worth 2^-24, as that of a subnormal here: it rounds so.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000u;
  const std::uint32_t special = choose(size > kInfinity, 0x7e00, 0x7c00);
  const std::uint32_t finite = choose(size < kSmallestNormal, subnormal, normal);
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000) |
                                    choose(size < kTooLarge, finite, special));
}

inline float from_fp16(std::uint16_t half) {
  constexpr std::uint32_t kRebias = 0x38000000, kStep = 0x00800000;  // one of the exponent
  const std::uint32_t size = half & 0x7fffu, fraction = size << 13;
  const std::uint32_t normal = fraction + kRebias;
  // Read as a number just above 2^-14, then without that: no subnormal float is touched.
  const float subnormal =
      std::bit_cast<float>(fraction + kRebias + kStep) - std::bit_cast<float>(kRebias + kStep);
  const std::uint32_t special = fraction | 0x7f800000u;
  const std::uint32_t value = choose(size < 0x0400, std::bit_cast<std::uint32_t>(subnormal),
                                     choose(size < 0x7c00, normal, special));
  return std::bit_cast<float>(value | (static_cast<std::uint32_t>(half) & 0x8000u) << 16);
}

/// bfloat16: a float's upper half, with its exponents.
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return static_cast<std::uint16_t>(
      choose((bits & 0x7fffffff) > 0x7f800000, bits >> 16 | 0x0040, rounded));
}

inline float from_bf16(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

}  // namespace cputrain::exchange
