#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "model/graph.h"
#include "weights/keras_file.h"
#include "weights/keras_layers.h"

namespace cputrain::weights {

/// Layers here with weights, by their number in the graph, and those of the file that stand for
/// them.
using KerasPairs = std::vector<std::pair<std::size_t, const KerasLayer*>>;

/// What a network here computes otherwise than that of a Keras file, as far as it is certain.
struct KerasDifferences {
  /// A text for each: strides, padding, groups and epsilon of paired layers, and what stands
  /// between them (activations, pools, zeros around).
  std::vector<std::string> layers{};
  /// "sigmoid" where the file's network ends in that, and ours in softmax; or the other way round.
  std::string outputs{};
  /// Layers of the file of which it is not known what they do: "Mine (mine_1)".
  std::vector<std::string> not_compared{};
};

/// None where the file says nothing of its network.
KerasDifferences keras_differences(const KerasNetwork&, const model::Graph&, const KerasPairs&);

/// What people should know where the file's network computes something else than the one here, as
/// far as its configuration says. Error(data) for Otherwise::refuse, unless layers are missing,
/// too: that is told elsewhere, and is reason enough.
std::vector<std::string> check_network(const KerasFile&, const KerasNetwork&, const model::Graph&,
                                       const KerasPairs&, Otherwise);

}  // namespace cputrain::weights
