#pragma once

#include <cstdint>
#include <span>

#include "datasets/decode.h"

namespace cputrain {

/// What a PNG, BMP or GIF file claims, found by walking its blocks without decoding anything:
/// stb_image checks sizes only as it goes and takes what is missing at the end for zeros.
struct Outline {
  bool valid = false;                  ///< the blocks make sense as far as they go
  bool complete = false;               ///< all data that the first picture needs are there
  std::int64_t width = 0, height = 0;  ///< 0 where the file ends before it says
  const char* problem = "";            ///< in words, when not valid or not complete
};

Outline outline_of(std::span<const std::uint8_t> file, Format);

}  // namespace cputrain
