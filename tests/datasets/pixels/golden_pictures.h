#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "datasets/decode/decode.h"

namespace cputrain::datasets {

/// pictures.json, which make_pictures.py writes with Pillow and SciPy.
const nlohmann::json& golden_pictures();

/// The picture of that script.
Picture golden_picture(int height, int width);

}  // namespace cputrain::datasets
