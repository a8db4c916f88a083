#pragma once

#include "data/pipeline.h"
#include "job/spec/training_spec.h"
#include "model/graph.h"

namespace cputrain {

/// Outputs of the last layer: --classes, or those of the data. Error(usage) where the data has
/// more.
int classes_of(const TrainingSpec&, const DataSource&);

/// The network for these classes. Error(usage) where the image is too small for it.
Graph build_graph(const TrainingSpec&, int classes);

}  // namespace cputrain
