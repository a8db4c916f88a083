#pragma once

#include <bit>
#include <vector>

#include "backends/cuda/kernels/numbers.h"

/// Floats as maps store them, rounded here as IEEE 754 says and not as the kernels do.
namespace cputrain::cuda {

/// The nearest float that has so many bits of mantissa fewer; of two as near the even one.
inline float rounded(float value, int fewer) {
  if (fewer == 0 || !(value - value == 0)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t unit = std::uint32_t{1} << fewer, rest = bits & (unit - 1);
  const bool odd = (bits & unit) != 0, up = rest > unit / 2 || (rest == unit / 2 && odd);
  return std::bit_cast<float>(bits - rest + (up ? unit : 0));
}

template <class N>
constexpr int kFewerBits = N::kNumbers == Numbers::bf16   ? 16
                           : N::kNumbers == Numbers::tf32 ? 13
                                                          : 0;
/// How far from a number its stored one may be, of its size.
template <class N>
constexpr double kRounding = kFewerBits<N> == 0 ? 0
                                                : 1.0 / (std::uint32_t{1} << (24 - kFewerBits<N>));

template <class N>
std::vector<float> rounded(std::vector<float> values) {
  for (float& value : values) value = rounded(value, kFewerBits<N>);
  return values;
}
template <class N>
std::vector<typename N::Stored> stored(const std::vector<float>& values) {
  std::vector<typename N::Stored> made;
  for (const float value : values) {
    const float near = rounded(value, kFewerBits<N>);
    if constexpr (N::kNumbers == Numbers::bf16) {
      made.push_back({static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(near) >> 16)});
    } else {
      made.push_back(near);
    }
  }
  return made;
}
template <class N>
std::vector<float> loaded(const std::vector<typename N::Stored>& values) {
  std::vector<float> made;
  for (const auto& value : values) {
    if constexpr (N::kNumbers == Numbers::bf16) {
      made.push_back(std::bit_cast<float>(std::uint32_t{value.bits} << 16));
    } else {
      made.push_back(value);
    }
  }
  return made;
}

}  // namespace cputrain::cuda
