#pragma once

#include <cstdint>
#include <span>

#include "core/shape.h"
#include "data/resize.h"
#include "datasets/pixels/pixel_view.h"

namespace cputrain::datasets {

/// Bilinear resize as tf.image.resize of TensorFlow 2 does it by default: pixel centres at
/// half-integers (src = (dst + 0.5) * in / out - 0.5), neighbours clamped to the image, no
/// smoothing before shrinking, the aspect ratio not kept. Computed in float and rounded to the
/// nearest byte (TensorFlow keeps the float; half a grey level is the price of a cache in bytes).
/// The same size gives the same bytes. `dst` has size.height * size.width * 3 bytes.
void resize_bilinear(const PixelView&, Shape size, std::span<std::uint8_t> dst);

/// Nearest neighbour exactly as Pillow's Image.resize(size, NEAREST): along each axis the position
/// begins at half a step and steps are added up in double, as ImagingScaleAffine does.
void resize_nearest(const PixelView&, Shape size, std::span<std::uint8_t> dst);

void resize_image(const PixelView&, Shape size, data::Resize, std::span<std::uint8_t> dst);

}  // namespace cputrain::datasets
