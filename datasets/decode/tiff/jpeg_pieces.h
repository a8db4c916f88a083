#pragma once

#include <tiffio.h>

#include "datasets/decode/tiff/layout.h"

namespace cputrain::datasets {

/// Decodes a page whose pieces are JPEG streams. libtiff would do it by limits of its own, which
/// environment variables change, and would fill in what is missing.
Decoded decode_jpeg_pieces(TIFF*, const TiffLayout&, std::span<const std::uint8_t> file,
                           DecodingBudget::Claim&);

}  // namespace cputrain::datasets
