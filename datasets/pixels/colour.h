#pragma once

#include <cstdint>
#include <span>

namespace cputrain::datasets {

/// Factors of brightness, contrast and saturation, each as Pillow's ImageEnhance has them (1 leaves
/// the image as it is), made in this order with rounding to bytes between them.
struct ColourChange {
  double brightness = 1, contrast = 1, saturation = 1;
  bool operator==(const ColourChange&) const = default;
};

/// Changes RGB bytes in place. Factors are rounded to 1/65536 and pixels computed in whole numbers,
/// the same on every machine.
void change_colour(std::span<std::uint8_t> rgb, const ColourChange&);

}  // namespace cputrain::datasets
