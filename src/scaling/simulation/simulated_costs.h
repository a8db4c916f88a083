#pragma once

#include "scaling/simulation/cost_table.h"
#include "scaling/simulation/simulation_request.h"
#include "training/request/training_spec.h"
#include "training/session/services.h"

namespace cputrain::simulation {

/// The file in the cache that keeps costs: of this CPU, program, network with its kernels, and the
/// images they were measured with, since zeros in them decide how long kernels take.
std::string costs_file_name(const training::TrainingFlags&, const placement::Machine&,
                            const std::string& network);

/// The costs of the model that `simulate` computes with: those of --costs, else those kept in the
/// cache (costs_file_name), else measured now and kept. --measure-seconds and
/// `here` (what is simulated is this machine) have them measured each time, `here` for longer.
/// Error(usage) where --costs are of another network.
CostTable costs_of(const SimulationRequest&, const training::Services&,
                   const training::TrainingSpec&, const model::Graph&, bool here);

}  // namespace cputrain::simulation
