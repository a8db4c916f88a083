#pragma once

#include <cstdint>
#include <span>

#include "core/shape.h"

/// Pillow's ImageOps and its sharpness, on RGB bytes in place: each channel for itself, in whole
/// numbers.
namespace cputrain::datasets {

/// Bytes from `threshold` on become 255 - byte.
void solarize(std::span<std::uint8_t> rgb, int threshold);
/// The first `bits` of each byte are kept, 1 to 8.
void posterize(std::span<std::uint8_t> rgb, int bits);
/// The darkest byte becomes 0 and the brightest 255.
void stretch_contrast(std::span<std::uint8_t> rgb);
/// Bytes become as frequent as can be.
void equalize(std::span<std::uint8_t> rgb);
/// ImageEnhance.Sharpness: 1 leaves the image as it is, 0 smooths it; pixels at the edges stay.
void sharpen(std::span<std::uint8_t> rgb, Shape image, double factor);

}  // namespace cputrain::datasets
