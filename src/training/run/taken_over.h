#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "training/request/choose_training.h"
#include "training/run/resume.h"
#include "training/session/session.h"

/// What a training that goes on has from its checkpoint, where no flag says it.
namespace cputrain::training {

/// The weights that the checkpoint's training began with, and its model. On rank 0; empty where
/// there is no checkpoint or it began with none.
BegunWith begun_with(const std::filesystem::path& checkpoint);

/// The spec of a training that began so: weights decide its recipe, named again or not, and its
/// model where --model does not.
TrainingSpec with_first_weights(const BegunWith&, TrainingSpec);

/// Fills in what rank 0 knows of `start.checkpoint` on all ranks. Collective.
void take_over(const Session&, const TrainingSpec&, Start&);

/// The spec with all of it.
TrainingSpec with_choices_of(const Start&, TrainingSpec);

}  // namespace cputrain::training
