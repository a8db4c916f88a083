#pragma once

#include "loop/optimizer.h"
#include "training/request/training_flags.h"
#include "zoo/zoo.h"

/// How a model is trained: its recipe with what the flags change. Error(usage) on combinations that
/// make no sense, on every rank alike.
namespace cputrain::training {

/// Whether the recipe is that of fine-tuning: a built-in model that begins with --weights. The
/// recipe of a model file is its writer's.
bool fine_tunes(const TrainingFlags&, const zoo::ModelEntry&);

/// The model's recipe, or that of fine-tuning.
zoo::Recipe choose_recipe(const TrainingFlags&, const zoo::ModelEntry&);

/// The rule with its figures, decay, clipping. Refuses figures that the rule does not have.
loop::OptimizerOptions choose_optimizer(const TrainingFlags&, const zoo::Recipe&);

/// `n`, which may depend on ranks, is left open: see scaling_of.
optim::LearningRateOptions choose_learning_rate(const TrainingFlags&, const zoo::Recipe&,
                                                const optim::UpdateRule&);

/// What scaling and warm-up count with, where either is asked for: the ranks, or the images of a
/// step over --base-batch.
std::optional<double> scaling_of(const TrainingFlags&, std::size_t images_of_a_step, int ranks);

data::PlanOptions choose_plan(const TrainingFlags&, const zoo::Recipe&);

/// Whether each epoch has an order of its own. shard-then-batch has the data's.
bool choose_shuffle(const TrainingFlags&, const zoo::Recipe&);

}  // namespace cputrain::training
