#pragma once

#include <filesystem>

#include "training/training.h"

/// best.safetensors: the weights of the epoch with the lowest loss of validation, or the highest
/// accuracy, whatever MIN_DELTA early stopping waits for.
namespace cputrain::training {

/// At a resume, or when a training goes back: best.safetensors of the run's folder becomes what it
/// was at the checkpoint. Where --save-best or --early-stopping begin only now, or the file could
/// not be written then, or --monitor is another one, the best is sought anew from `progress` on,
/// and a line is printed. Returns whether the file is there. Collective; Error(output) on rank 0.
bool take_up_best(const Training&, const std::filesystem::path& run,
                  const std::filesystem::path& checkpoint, loop::Progress& progress);

/// Prints that a finished run has none, although they are asked for now.
void say_missing_best(const Session&, const std::filesystem::path& run, const SafetyFlags&);

}  // namespace cputrain::training
