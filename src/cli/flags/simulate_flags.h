#pragma once

#include "cli/config.h"
#include "cli/flags/flags.h"

namespace cputrain::cli {

void add_simulate_flags(Flags&, Config&);

/// Flags that are handed on to the simulated trainings.
extern const std::vector<std::string> kOfTraining;
/// Flags that change nothing on a platform of GPUs, or of CPUs.
extern const std::vector<std::string> kWithoutEffectOnGpus, kWithoutEffectOnCpus;
/// Flags of a simulation that its trainings have, too, as words.
std::vector<std::string> flags_of_training(const Config&);

}  // namespace cputrain::cli
