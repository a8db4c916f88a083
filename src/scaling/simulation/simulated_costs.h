#pragma once

#include <optional>
#include <string>

#include "scaling/simulation/cost_table.h"
#include "training/request/choose_training.h"
#include "training/session/services.h"

namespace cputrain::simulation {

/// The file in the cache that keeps costs: of this CPU, program, network with its kernels, and the
/// images they were measured with, since zeros in them decide how long kernels take.
std::string costs_file_name(const training::TrainingFlags&, const placement::Machine&,
                            const std::string& network);

/// The model's costs of --costs FILE. Error(usage) where they are of another network.
CostTable given_costs(const std::string& file, const training::Services&,
                      const training::TrainingSpec&, const model::Graph&);

/// Those kept in the cache (costs_file_name), else measured now and kept. --measure-seconds and
/// `here` (what is simulated is this machine) have them measured each time, `here` for longer.
CostTable measured_costs(const training::Services&, const training::TrainingSpec&,
                         const model::Graph&, std::optional<int> measure_seconds, bool here);

}  // namespace cputrain::simulation
