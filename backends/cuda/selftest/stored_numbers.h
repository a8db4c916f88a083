#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cuda/kernels/numbers.h"

/// How numbers are stored, on the host and by their definition: arithmetic in double, where kernels
/// change bits.
namespace cputrain::cuda {

/// Binary digits of a number's mantissa, with the one that is not stored.
constexpr int digits_of(Numbers numbers) {
  if (numbers == Numbers::exact) return 24;
  return numbers == Numbers::tf32 ? 11 : 8;
}
/// A number of the format lies at most this part of a number away from it.
inline double unit_roundoff(Numbers numbers) { return std::ldexp(1, -digits_of(numbers)); }

/// The nearest number of the format. Of two that are equally near tf32 takes the larger magnitude,
/// bf16 the one whose last digit is 0.
inline float rounded(Numbers numbers, float value) {
  if (numbers == Numbers::exact || !std::isfinite(value)) return value;
  constexpr int kLeastExponent = std::numeric_limits<float>::min_exponent;
  int exponent = 0;
  static_cast<void>(std::frexp(value, &exponent));
  const double last = std::ldexp(1, std::max(exponent, kLeastExponent) - digits_of(numbers));
  const double places = static_cast<double>(value) / last;
  const double near =
      last * (numbers == Numbers::bf16 ? std::nearbyint(places) : std::round(places));
  if (std::abs(near) > static_cast<double>(std::numeric_limits<float>::max())) {
    return std::copysign(std::numeric_limits<float>::infinity(), value);
  }
  return static_cast<float>(near);
}

inline std::vector<float> rounded(Numbers numbers, std::vector<float> values) {
  for (float& value : values) value = rounded(numbers, value);
  return values;
}

/// The bytes of numbers that the format has, as maps have them.
inline std::vector<std::byte> stored(Numbers numbers, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * stored_bytes(numbers));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(values[i]);
    const auto upper = static_cast<std::uint16_t>(bits >> 16);
    const void* const from = numbers == Numbers::bf16 ? static_cast<const void*>(&upper) : &bits;
    std::memcpy(&bytes[i * stored_bytes(numbers)], from, stored_bytes(numbers));
  }
  return bytes;
}

/// The reverse.
inline std::vector<float> loaded(Numbers numbers, const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / stored_bytes(numbers));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::byte* const from = &bytes[i * stored_bytes(numbers)];
    std::uint32_t bits = 0;
    std::uint16_t upper = 0;
    if (numbers == Numbers::bf16) {
      std::memcpy(&upper, from, sizeof(upper));
      bits = static_cast<std::uint32_t>(upper) << 16;
    } else {
      std::memcpy(&bits, from, sizeof(bits));
    }
    values[i] = std::bit_cast<float>(bits);
  }
  return values;
}

}  // namespace cputrain::cuda
