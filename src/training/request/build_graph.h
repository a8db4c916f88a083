#pragma once

#include "data/pipeline.h"
#include "model/graph.h"
#include "training/request/choose_training.h"

namespace cputrain::training {

/// Outputs of the last layer: --classes, or those of the data. Error(usage) where the data has
/// more.
int classes_of(const TrainingSpec&, const data::DataSource&);

/// The network for these classes. Error(usage) where the image is too small for it.
model::Graph build_graph(const TrainingSpec&, int classes);

}  // namespace cputrain::training
