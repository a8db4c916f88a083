#pragma once

#include "data/pipeline.h"
#include "job/spec/training_spec.h"
#include "model/graph.h"

namespace cputrain::job {

/// Outputs of the last layer: --classes, or those of the data. Error(usage) where the data has
/// more.
int classes_of(const TrainingSpec&, const data::DataSource&);

/// The network for these classes. Error(usage) where the image is too small for it.
model::Graph build_graph(const TrainingSpec&, int classes);

}  // namespace cputrain::job
