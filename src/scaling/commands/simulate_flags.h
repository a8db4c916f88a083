#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "scaling/simulation/platform.h"
#include "scaling/simulation/simulated_costs.h"

namespace cputrain::commands {

struct SimulateOptions : cli::Options {
  simulation::SimulationRequest simulation;
  std::optional<int> repeat;
};

void add_simulate_flags(cli::Flags&, SimulateOptions&);

/// Flags that are handed on to the simulated trainings.
extern const std::vector<std::string> kOfTraining;
/// Flags that change nothing on a platform of GPUs.
bool is_idle_on_gpus(const std::string& flag);
/// Flags of a simulation that its trainings have, too, as words.
std::vector<std::string> flags_of_training(const SimulateOptions&);

/// With what the flags change. Before costs are measured `here` is the machine's cores alone.
/// Error(usage) for flags that were typed and would change nothing.
simulation::Platform choose_platform(const SimulateOptions&, const training::Services&,
                                     const simulation::CostTable*);

}  // namespace cputrain::commands
