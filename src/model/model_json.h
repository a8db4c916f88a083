#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "model/graph.h"

namespace cputrain {
class JsonFields;
}

/// A graph as JSON, in weight files and in model files:
/// {"input": {"height": 256, "width": 256, "channels": 3, "scale": ..., "offset": ...},
///  "layers": [{"type": "convolution", "filters": 32, "kernel": 3}, ...]}
/// Scale and offset are a number, or one for each colour; in place of them there may be "mean" and
/// "deviation" (normalization.h).
/// Fields of a layer that are left out have the defaults of its struct (model/layers). A layer
/// reads the one before it unless "from" names others; "name" may be left out, too
/// (src/zoo/README.md).
namespace cputrain::model {

/// The fields of an object in a description, none of which may be null.
JsonFields model_fields(const nlohmann::json& object, const std::string& where);

nlohmann::ordered_json to_json(const Graph&);
/// A hash of that text.
std::uint64_t fingerprint(const Graph&);

/// What a model file leaves open.
struct ModelSize {
  Shape image;
  int classes;  ///< what "units": "classes" stands for
};

/// Checks every figure; Error(data) names `where` and the entry that is wrong. Without a size the
/// description must have its own.
Graph graph_from_json(const nlohmann::json&, const std::string& where,
                      const std::optional<ModelSize>& = std::nullopt);

}  // namespace cputrain::model
