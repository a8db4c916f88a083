#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "compute/image_feed.h"
#include "core/shape.h"
#include "data/resize.h"

namespace cputrain::datasets {

/// Where each pixel of a new image comes from in the old one:
/// row = yy * y + yx * x + y0, column = xy * y + xx * x + x0, counted from the centre of the first
/// pixel. Whole numbers of 1/2^24 pixel, so that sums are the same on every machine.
struct PixelMap {
  static constexpr int kBits = 24;
  static constexpr std::int64_t kOne = std::int64_t{1} << kBits;
  std::int64_t yy = kOne, yx = 0, y0 = 0;
  std::int64_t xy = 0, xx = kOne, x0 = 0;

  bool operator==(const PixelMap&) const = default;
};

/// The map of Keras' ImageDataGenerator (apply_affine_transform of keras_preprocessing): about the
/// centre (side - 1) / 2, rotation times shift times shear times zoom. Angles in degrees, shifts in
/// pixels, zooms as factors of the row and column.
struct Warp {
  double rotate = 0, shear = 0;
  double shift_y = 0, shift_x = 0;
  double zoom_y = 1, zoom_x = 1;
  bool operator==(const Warp&) const = default;
};
PixelMap warp_map(const Warp&, Shape image);

/// The image is turned first and then mapped; by_90 and by_270 need a square one.
PixelMap after_turn(data::Turn, const PixelMap&, Shape image);
/// The image is mapped first and then turned.
PixelMap then_turn(const PixelMap&, data::Turn, Shape image);
/// The window moves down and right by whole pixels.
PixelMap then_move(const PixelMap&, int rows, int columns);

/// Rows [top, bottom) and columns [left, right).
struct Window {
  int top = 0, bottom = 0, left = 0, right = 0;
  bool operator==(const Window&) const = default;
};

/// The map as a move of bytes: nothing where places lie between pixels or outside of the image. The
/// window has a pixel.
std::optional<compute::ImageMove> as_move(const PixelMap&, Shape image, const Window&);

/// Writes the pixels of the window, the others black. Places between pixels are bilinear (to 1/4096
/// pixel) and places outside are those of the nearest edge, as SciPy's affine_transform with order
/// 1 and mode "nearest". A map of whole pixels copies bytes.
void map_image(const std::uint8_t* src, Shape image, const PixelMap&, const Window&,
               std::span<std::uint8_t> dst);

}  // namespace cputrain::datasets
