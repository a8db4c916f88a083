#pragma once

#include "compute/program.h"
#include "training/plan/training_plan.h"
#include "training/session/session.h"

/// Where a backend says so (BackendFacts::keeps_methods), what a training finds by timing is kept
/// in a file of the machine, cputrain/tiles-*.txt in the user's cache folder. Later trainings of
/// the same network, kernels, device and images at once begin with it. It changes no bits.
namespace cputrain::training {

/// Uses what rank 0's machine has, on all ranks, unless the program has found something.
/// Collective.
void use_kept_methods(const Session&, const TrainingPlan&, compute::Program&);

/// Keeps what rank 0's program has, once its trials have ended.
void keep_methods(const Session&, const TrainingPlan&, compute::Program&);

}  // namespace cputrain::training
