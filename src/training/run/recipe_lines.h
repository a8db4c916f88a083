#pragma once

#include <string>
#include <vector>

#include "data/batch_plan.h"
#include "training/request/choose_training.h"
#include "training/training.h"

/// The start-up lines of a training: its plan, and of that batches and learning rate.
namespace cputrain::training {

/// After warm-up, before any schedule.
double full_rate(const TrainingSpec&);

/// One line each for whatever is not plain: how the rate comes about, gradients of several batches,
/// growing batches, another sharding.
std::vector<std::string> recipe_lines(const TrainingSpec&, const data::BatchPlan&);

/// What is odd about the recipe, for those who can change it (Task::advised): a sharding that does
/// not show every rank every kind of image, averages of weights that have no time to become any, a
/// batch of more images than there are, moving statistics with too few steps.
std::vector<std::string> recipe_warnings(const TrainingSpec&, const data::BatchPlan&,
                                         const model::Graph&);

/// What users should know before the first step, on standard error: where ranks run, the model,
/// batches, the recipe, and what is odd about any of them. Once loaded.
void say_plan(const Training&);

}  // namespace cputrain::training
