#pragma once

#include "training/request/choose_training.h"
#include "training/training.h"

/// The start-up lines of a training: its plan, and of that batches and learning rate.
namespace cputrain::training {

/// After warm-up, before any schedule.
double full_rate(const TrainingSpec&);

/// What users should know before the first step, on standard error: where ranks run, the model,
/// batches, the recipe, and what is odd about any of them. Once loaded.
void say_plan(const Training&);

}  // namespace cputrain::training
