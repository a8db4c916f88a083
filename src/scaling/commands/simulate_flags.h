#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "scaling/simulation/simulation_request.h"

namespace cputrain::commands {

struct SimulateOptions : cli::Options {
  simulation::SimulationRequest simulation;
  std::optional<int> repeat;
};

void add_simulate_flags(cli::Flags&, SimulateOptions&);

/// Flags that are handed on to the simulated trainings.
extern const std::vector<std::string> kOfTraining;
/// Flags that change nothing on a platform of GPUs, or of CPUs.
extern const std::vector<std::string> kWithoutEffectOnGpus, kWithoutEffectOnCpus;
/// Flags of a simulation that its trainings have, too, as words.
std::vector<std::string> flags_of_training(const SimulateOptions&);

}  // namespace cputrain::commands
