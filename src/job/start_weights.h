#pragma once

#include <memory>
#include <string>
#include <vector>

#include "job/training_setup.h"
#include "train/weights.h"

namespace cputrain {

/// Names by label: those of the data, then "class 2", ... up to --classes.
std::vector<std::string> class_names(const DataSource&, int classes);

/// --weights as rank 0 reads it, opened once for all that is asked of it: it stays the same file
/// where its name gets another one meanwhile. Null on other ranks and without the flag.
/// Error(data).
std::shared_ptr<const safetensors::File> open_start(const Session&, const TrainingSpec&);

/// Rank 0 makes the weights or loads them from Training::start, the others get them from it; a hash
/// proves that they did. What makes the outputs is put by the names of the data's classes, and a
/// line says where that was needed or not possible. Error(data) for weights that cannot be used.
void start_weights(const Session&, const TrainingSpec&, const Graph&, const DataSource&,
                   const Training&);

/// What the weights of a training on this data will say about it: earlier trainings, whose weights
/// it begins with, included (known to rank 0, which saves). Warns where one of them learnt from
/// images that are for validation now. `start` is Training::start. Error(data).
TrainingData training_data(const Session&, const TrainingSpec&, const DataSource&,
                           const safetensors::File* start);

}  // namespace cputrain
