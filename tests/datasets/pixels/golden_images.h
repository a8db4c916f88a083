#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "datasets/decode/decode.h"

namespace cputrain::datasets {

/// images.json, which make_images.py writes with Pillow and SciPy.
const nlohmann::json& golden_images();

/// The image of that script.
Image golden_image(int height, int width);

}  // namespace cputrain::datasets
