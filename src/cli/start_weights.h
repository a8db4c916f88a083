#pragma once

#include <string>
#include <vector>

#include "cli/training_setup.h"
#include "train/weights.h"

namespace cputrain {

/// Names by label: those of the data, then "class 2", ... up to --classes.
std::vector<std::string> class_names(const DataSource&, int classes);

/// Rank 0 makes or loads the weights, the others get them from it; a hash proves that they did.
/// What makes the outputs of --weights is put by the names of `classes`, and a line says where that
/// was needed or not possible. Error(data) for weights that cannot be used.
void start_weights(const Session&, const Config&, std::uint64_t seed, const Graph&,
                   const std::vector<std::string>& classes, const Training&);

/// What the weights of a training on this data will say about it: earlier trainings, whose weights
/// it begins with, included (known to rank 0, which saves). Warns where one of them learnt from
/// images that are for validation now. Error(data).
TrainingData training_data(const Session&, const Config&, const DataSource&, std::uint64_t seed);

}  // namespace cputrain
