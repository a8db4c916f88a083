#pragma once

#include <filesystem>
#include <span>

#include "model/graph.h"
#include "model/weights/keras_arrays.h"
#include "model/weights/module_names.h"
#include "model/weights/weight_arrays.h"

namespace cputrain::model {

/// The arrays of a weight file for this network, whatever program wrote it, by its first bytes.
/// `names`: what others call the layers. Error(data), and that of `read_keras`. `otherwise`: what
/// is done where the file's network computes something else with the same arrays.
WeightArrays open_arrays(const std::filesystem::path&, const Graph&,
                         std::span<const ModuleNames> names, const ReadKeras& read_keras,
                         Otherwise otherwise = Otherwise::refuse);

}  // namespace cputrain::model
