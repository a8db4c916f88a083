#pragma once

#include <filesystem>

#include "training/training.h"

namespace cputrain::training {

/// What a training that goes on does differently from what a person may expect, on rank 0: it does
/// not read the weights of --weights again, and another end moves the rate of a schedule that leads
/// to it. A line where no step follows, too. `progress` is that of the checkpoint.
void say_what_changes(const Training&, const std::filesystem::path& checkpoint,
                      const loop::Progress& progress);

}  // namespace cputrain::training
