#pragma once

#include <string>

#include "training/request/training_flags.h"

namespace cputrain::training {

/// Without --model a training takes the built-in model, the size of its images and what becomes of
/// pixels from its --weights, where the file says them. Flags that were given stay. Returns what
/// was taken, to be printed; empty for nothing. Error(data) for a file that is damaged.
std::string follow_weights(TrainingFlags&);

}  // namespace cputrain::training
