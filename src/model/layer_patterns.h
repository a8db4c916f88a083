#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/graph.h"

namespace cputrain::model {

/// Names of the layers with parameters that a pattern means: a whole name, or a beginning before
/// `*`. Error(usage) where a pattern of --freeze means none, with the nearest name.
std::vector<std::string> layers_matching(const Graph&, std::span<const std::string> patterns);

}  // namespace cputrain::model
