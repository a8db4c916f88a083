#pragma once

#include <cstdint>
#include <span>

#include "core/shape.h"
#include "data/dataset.h"
#include "data/resize.h"

namespace cputrain::datasets {

/// The image, turned, with its longer side at most `longest` pixels: the mean of the pixels that
/// each new one covers. Small images are kept as they are, without loss; others become JPEG.
data::Thumbnail make_thumbnail(std::span<const std::uint8_t> pixels, Shape image, data::Turn,
                               int longest);

}  // namespace cputrain::datasets
