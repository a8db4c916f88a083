#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/graph.h"

namespace cputrain::model {

/// Keras' summary table with what else matters: layer, output, parameters, MACs per image, bytes of
/// an image's float32 output; then the totals and the bytes that are reduced in every step.
std::string summary_text(const Graph&);

/// {"parameters", "macs_per_image", "layers": [{"name", "type", "output": [H, W, C], ...}]}
nlohmann::ordered_json summary_json(const Graph&);

}  // namespace cputrain::model
