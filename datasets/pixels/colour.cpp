#include "datasets/pixels/colour.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace cputrain::datasets {
namespace {

constexpr int kFactorBits = 16;
constexpr std::int32_t kFactorOne = 1 << kFactorBits, kFactorHalf = kFactorOne / 2;

std::int32_t fixed_factor(double factor) {
  return static_cast<std::int32_t>(std::lround(factor * kFactorOne));
}

/// base + factor * (value - base), as a byte.
std::uint8_t blend(std::int32_t base, std::int32_t value, std::int32_t factor) {
  const std::int32_t sum = base * kFactorOne + factor * (value - base);
  return static_cast<std::uint8_t>(std::clamp((sum + kFactorHalf) >> kFactorBits, 0, 255));
}

/// ITU-R 601 luma with Pillow's whole numbers.
std::int32_t grey_of(const std::uint8_t* rgb) {
  return (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16;
}

std::int32_t mean_grey(std::span<const std::uint8_t> rgb) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < rgb.size(); i += 3) sum += grey_of(&rgb[i]);
  const auto pixels = static_cast<std::int64_t>(rgb.size() / 3);
  return static_cast<std::int32_t>((2 * sum + pixels) / (2 * pixels));
}

}  // namespace

void change_colour(std::span<std::uint8_t> rgb, const ColourChange& change) {
  if (rgb.empty()) return;
  if (const std::int32_t factor = fixed_factor(change.brightness); factor != kFactorOne) {
    for (std::uint8_t& value : rgb) value = blend(0, value, factor);
  }
  if (const std::int32_t factor = fixed_factor(change.contrast); factor != kFactorOne) {
    const std::int32_t mean = mean_grey(rgb);
    for (std::uint8_t& value : rgb) value = blend(mean, value, factor);
  }
  if (const std::int32_t factor = fixed_factor(change.saturation); factor != kFactorOne) {
    for (std::size_t i = 0; i < rgb.size(); i += 3) {
      const std::int32_t grey = grey_of(&rgb[i]);
      for (std::size_t c = 0; c < 3; ++c) rgb[i + c] = blend(grey, rgb[i + c], factor);
    }
  }
}

}  // namespace cputrain::datasets
