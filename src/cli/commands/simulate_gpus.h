#pragma once

#include "cells/cells.h"
#include "cli/flags/simulate_flags.h"
#include "job/session/services.h"
#include "job/spec/training_spec.h"
#include "model/graph.h"
#include "simulation/platform.h"

namespace cputrain::cli {

/// `simulate` for a platform of GPUs: fills the cells of the table, tells and writes them. Needs
/// --costs, and no simulator.
ExitCode simulate_gpus(const SimulateOptions&, const job::Services&, const job::TrainingSpec&,
                       const model::Graph&, const simulation::Platform&, cells::CellTable);

}  // namespace cputrain::cli
