#pragma once

#include <cstdint>
#include <span>

#include "datasets/decode/decode.h"

namespace cputrain::datasets {

/// How an image lies in its file, as the tag Orientation of TIFF 6.0 and EXIF 2.3 numbers it: 1 is
/// upright, 2 to 4 are mirrored or turned by half, 5 to 8 have rows and columns swapped. It stands
/// in the APP1 segment of a JPEG, the chunk EXIF of a WebP, the chunk eXIf of a PNG, and the first
/// directory of a TIFF. HEIC and AVIF are turned by what decodes them. 1 where the file has no such
/// tag, or its value makes no sense. Reads a few bytes of the file and allocates nothing.
int orientation_of(Format, std::span<const std::uint8_t> file);

}  // namespace cputrain::datasets
