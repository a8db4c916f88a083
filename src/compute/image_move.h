#pragma once

#include <cstdint>

#include "core/shape.h"

namespace cputrain::compute {

/// An image as pixels of another one, its source, whose bytes are moved and not computed. Pixel
/// (y, x) is the source's pixel number first + y * down + x * across, counted row by row; outside
/// rows [top, bottom) and columns [left, right) it is black.
struct alignas(16) ImageMove {
  std::uint32_t source = 0;  ///< which of many images
  std::int32_t first = 0, down = 0, across = 1;
  std::int32_t top = 0, bottom = 0, left = 0, right = 0;

  bool operator==(const ImageMove&) const = default;
};

/// The source as it is.
inline ImageMove whole_image(std::uint32_t source, const Shape& image) {
  return {.source = source, .down = image.width, .bottom = image.height, .right = image.width};
}

}  // namespace cputrain::compute
