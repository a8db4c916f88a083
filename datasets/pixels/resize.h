#pragma once

#include <cstdint>
#include <span>

#include "core/shape.h"
#include "data/resize.h"
#include "datasets/pixels/pixel_view.h"

namespace cputrain::datasets {

/// Writes the image in the size of `dst`, size.height * size.width * 3 bytes. What is stretched to
/// the size that it has stays as it is.
///
/// `area`, `bilinear` and `bicubic` give the bytes of Pillow's Image.resize: weights of 22 bits,
/// rows first, bytes in between.
///
/// `bilinear_plain` is tf.image.resize of TensorFlow 2 by default: pixel centres at half-integers
/// (src = (dst + 0.5) * in / out - 0.5), neighbours clamped to the image, computed in float and
/// rounded to the nearest byte (TensorFlow keeps the float; half a grey level is the price of a
/// cache in bytes).
///
/// `nearest` is Pillow's: along each axis the position begins at half a step and steps are added up
/// in double, as its ImagingScaleAffine does.
void resize_image(const PixelView&, Shape size, const data::Resizing&, std::span<std::uint8_t> dst);

}  // namespace cputrain::datasets
