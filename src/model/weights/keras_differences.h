#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "model/graph.h"
#include "model/weights/keras_layers.h"

namespace cputrain::model {

/// Layers here with weights, by their number in the graph, and those of the file that stand for
/// them.
using KerasPairs = std::vector<std::pair<std::size_t, const KerasLayer*>>;

/// What a network here computes otherwise than that of a Keras file, one text for each difference
/// that is certain: strides, padding, groups and epsilon of the paired layers, and what stands
/// between them (activations, pools, zeros around). What the last layer here makes of its numbers
/// is not compared. Empty for a file without a configuration, or with one that cannot be read.
std::vector<std::string> keras_differences(const std::string& config, const Graph&,
                                           const KerasPairs&);

}  // namespace cputrain::model
