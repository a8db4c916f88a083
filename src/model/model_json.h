#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/graph.h"

/// A graph as JSON, so that a weight file says what it belongs to:
/// {"input": {"height":256, "width":256, "channels":3, "scale":..., "offset":...},
///  "layers": [{"name":"conv2d", "type":"convolution", "filters":32, ...}, ...]}
/// A layer reads the one before it unless "from" names others.
namespace cputrain {

nlohmann::json to_json(const Graph&);

/// Checks every figure; Error(data) names `where` and the entry that is wrong.
Graph graph_from_json(const nlohmann::json&, const std::string& where);

}  // namespace cputrain
