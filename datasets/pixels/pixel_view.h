#pragma once

#include <cstddef>
#include <cstdint>

#include "datasets/decode/decode.h"
#include "datasets/pixels/pixel_map.h"

namespace cputrain::datasets {

/// An image as it is shown, over the pixels as they are stored: nothing is copied to turn it. Valid
/// as long as the image.
struct PixelView {
  const std::uint8_t* first;   ///< the upper left pixel that is shown
  std::ptrdiff_t down, right;  ///< bytes to the next pixel of a column and of a row
  int width, height;

  // NOLINTNEXTLINE(google-explicit-constructor): an image is the plainest view of itself
  PixelView(const Image& image) : PixelView(image, 1) {}

  /// A part of pixels that lie in rows of `row_width`.
  PixelView(const std::uint8_t* pixels, int row_width, const Window& part)
      : first(pixels + (std::ptrdiff_t{part.top} * row_width + part.left) * 3),
        down(std::ptrdiff_t{3} * row_width),
        right(3),
        width(part.right - part.left),
        height(part.bottom - part.top) {}

  /// Turned by an EXIF orientation from 1 to 8 (orientation.h).
  PixelView(const Image& image, int orientation);

  const std::uint8_t* row(std::size_t number) const {
    return first + static_cast<std::ptrdiff_t>(number) * down;
  }
  bool lies_row_by_row() const { return right == 3 && down == std::ptrdiff_t{3} * width; }
};

/// The image of a file, turned by its orientation unless that is ignored.
PixelView shown(const Decoded&, data::Exif);

}  // namespace cputrain::datasets
