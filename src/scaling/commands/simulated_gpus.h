#pragma once

#include "scaling/cells/cells.h"
#include "scaling/commands/simulate_flags.h"
#include "scaling/simulation/platform.h"
#include "training/request/training_spec.h"

namespace cputrain::commands {

/// The table of a platform of GPUs, by formulas. `table` has its cells, without figures.
ExitCode simulate_gpus(const SimulateOptions&, const training::Services&,
                       const training::TrainingSpec&, const model::Graph&,
                       const simulation::Platform&, cells::CellTable table);

}  // namespace cputrain::commands
