#pragma once

#include <span>

#include "model/graph.h"
#include "weights/keras_differences.h"
#include "weights/keras_file.h"
#include "weights/module_names.h"
#include "weights/weight_file.h"

namespace cputrain::weights {

/// The arrays of a Keras file for this network. Layers are found by their names, ours or those of
/// `names`. A plain chain of layers is also found by its order, as Keras does it, where names are
/// those that it makes up. A last layer of another name is the one that is left. Error(data) where
/// the file does not tell which layer is which. Where its configuration says that its network
/// computes something else, that is Error(data), or a part of the caveat.
WeightArrays keras_arrays(const KerasFile&, const model::Graph&,
                          std::span<const ModuleNames> names = {}, Otherwise = Otherwise::refuse);

}  // namespace cputrain::weights
