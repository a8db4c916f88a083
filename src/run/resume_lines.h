#pragma once

#include <filesystem>

#include "job/training_job.h"

namespace cputrain::run {

/// What a training that goes on does differently from what a person may expect, on rank 0: it does
/// not read the weights of --weights again, and another end moves the rate of a schedule that leads
/// to it. A line where no step follows, too. `progress` is that of the checkpoint.
void say_what_changes(const job::TrainingJob&, const std::filesystem::path& checkpoint,
                      const train::Progress& progress);

}  // namespace cputrain::run
