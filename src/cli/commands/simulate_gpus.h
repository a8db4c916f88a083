#pragma once

#include "cli/config.h"
#include "model/graph.h"
#include "scaling/cells/cells.h"
#include "scaling/simulation/platform.h"
#include "training/session/services.h"
#include "training/spec/training_spec.h"

namespace cputrain::cli {

/// `simulate` for a platform of GPUs: fills the cells of the table, tells and writes them. Needs
/// --costs, and no simulator.
int simulate_gpus(const Config&, const training::Services&, const training::TrainingSpec&,
                  const model::Graph&, const simulation::Platform&, cells::CellTable);

}  // namespace cputrain::cli
