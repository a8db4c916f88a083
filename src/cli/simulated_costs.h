#pragma once

#include "cli/services.h"
#include "cli/training_setup.h"
#include "simulation/cost_table.h"

namespace cputrain {

/// The file in the cache that keeps costs: of this CPU, program, network with its kernels, and the
/// pictures they were measured with, since zeros in them decide how long kernels take.
std::string costs_file_name(const Config&, const Machine&, const std::string& network);

/// The costs of the model that `simulate` computes with: those of --costs, else those kept in the
/// cache (costs_file_name), else measured now and kept. --measure-seconds and
/// `here` (what is simulated is this machine) have them measured each time, `here` for longer.
/// Error(usage) where --costs are of another network.
CostTable costs_of(const Config&, const Services&, const TrainingChoices&, const Graph&, bool here);

}  // namespace cputrain
