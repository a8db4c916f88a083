#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "datasets/decode/decode.h"

namespace cputrain::datasets {

/// The image as a file of format "png", "bmp" or "jpeg" (quality 95), through stb_image_write.
std::vector<std::byte> encode(const Image&, std::string_view format);

}  // namespace cputrain::datasets
