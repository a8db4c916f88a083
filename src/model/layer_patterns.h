#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/graph.h"

namespace cputrain::model {

/// The pattern of all layers but those of head_layers().
inline constexpr std::string_view kAllButHead = "all-but-head";

/// Names of the layers with parameters that a pattern of --freeze means: a name, in which `*`
/// stands for any text; `until=LAYER`, all up to this one, or to the last layer of a block of that
/// name; `all-but-head`, all but those of head_layers(); `none`, none. Error(usage) where a pattern
/// means none, with the nearest name.
std::vector<std::string> layers_matching(const Graph&, std::span<const std::string> patterns);

/// The layers that make the outputs: the last one with a kernel, and batch normalization behind it.
std::vector<std::string> head_layers(const Graph&);
/// The layers with parameters that are none of these.
std::vector<std::string> backbone_layers(const Graph&);

}  // namespace cputrain::model
