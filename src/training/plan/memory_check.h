#pragma once

#include <vector>

#include "training/plan/compiled_training.h"

/// Refusals of trainings that cannot fit, before they take what they need.
namespace cputrain::training {

/// Before the arenas are mapped: whether nodes have the least that any exchange needs of them.
/// Error(usage).
void check_arenas(const Session&, const TrainingPlan&, const std::vector<NodeCapacity>&,
                  const compute::ParameterLayout&);

/// Whether each node has what its ranks have asked for. Error(usage) on all ranks alike, naming
/// what would fit. Collective where it does not.
void check_fits(const Session&, const TrainingPlan&, const CompiledTraining&);

}  // namespace cputrain::training
