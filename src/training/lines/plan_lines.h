#pragma once

#include "training/training.h"

namespace cputrain::training {

/// What users should know before the first step, on standard error: where ranks run, the model,
/// batches, the recipe, and what is odd about any of them. Once loaded.
void say_plan(const Training&);

}  // namespace cputrain::training
