#pragma once

#include <span>

#include "model/graph.h"
#include "weights/module_names.h"
#include "weights/weight_file.h"

namespace cputrain::weights {

/// The arrays of a file for this network. Files of PyTorch are those that say so, as our own export
/// does, and those that say nothing of their network and have none of its arrays under our names.
/// Other programs have several names for its layers. Those are taken that the file has most of;
/// our own count, too. What stands before the names ("module.", "sequential/") is left out where
/// all names of the file have it, or all arrays of the network. Error(data) where two arrays may be
/// meant by one name.
WeightArrays arrays_for(const safetensors::File&, const model::Graph&,
                        std::span<const ModuleNames> names = {});

}  // namespace cputrain::weights
