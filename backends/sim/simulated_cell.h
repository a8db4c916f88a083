#pragma once

#include "simulation/job.h"

namespace cputrain {

/// Trains for the steps of a job on simulated time: the program's own spec (micro-batches,
/// sharded layers, the way to exchange gradients), loop and messages. To be called on every rank;
/// the result is rank 0's. Throws what the program would say of a training that cannot be.
SimulationResult run_simulated_cell(const SimulationJob&);

}  // namespace cputrain
