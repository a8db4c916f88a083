#pragma once

#include <string>
#include <vector>

#include "cli/config.h"
#include "training/training_job.h"

namespace cputrain::cli {

/// "--keep 3 changes nothing without checkpoints, ...", one for each flag that was given, on the
/// command line or in a --config file, and has no effect on this. Those in the environment are
/// meant for many commands, and ranks of a sweep have its flags: nothing is said of either. `job`
/// is null where nothing trains; a training is compiled already.
std::vector<std::string> idle_flags(const Config&, const training::TrainingJob* job);

}  // namespace cputrain::cli
