#pragma once

#include "scaling/simulation/simulator.h"
#include "training/request/training_flags.h"

namespace cputrain::sim {

/// The only backend there.
inline constexpr const char* kSimulated = "simulated";

/// Trains for the steps of a job on simulated time, with the job's arguments as flags: the
/// program's own spec (micro-batches, sharded layers, the way to exchange gradients), loop and
/// messages. To be called on every rank; the result is rank 0's. Throws the program's own errors
/// for a training that cannot be.
simulation::SimulationResult run_simulated_cell(const simulation::SimulationJob&,
                                                const training::TrainingFlags&);

}  // namespace cputrain::sim
