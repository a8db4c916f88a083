#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/graph.h"
#include "weights/keras_layers.h"
#include "weights/module_names.h"
#include "weights/weight_file.h"

namespace cputrain::weights {

/// The arrays of a Keras file for this network. Layers are found by their names, ours or those of
/// `names`. A plain chain of layers is also found by its order, as Keras does it, where names are
/// those that it makes up. A last layer of another name is the one that is left. Error(data) where
/// the file does not tell which layer is which. Where its configuration says that its network
/// computes something else, that is Error(data), or a part of the caveat where it `may_differ`.
WeightArrays keras_arrays(const KerasFile&, const model::Graph&,
                          std::span<const ModuleNames> names = {}, bool may_differ = false);

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
/// far as its configuration says. Error(data) unless it `may_differ`, or layers are missing,
/// too: that is told elsewhere, and is reason enough.
std::vector<std::string> check_network(const KerasFile&, const KerasNetwork&, const model::Graph&,
                                       const KerasPairs&, bool may_differ);

}  // namespace cputrain::weights
