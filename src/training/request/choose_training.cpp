#include "training/request/choose_training.h"

#include <algorithm>

#include "training/request/build_graph.h"
#include "training/request/recipe_choices.h"
#include "training/shard_dense.h"

namespace cputrain::training {

TrainingSpec choose_training(const TrainingFlags& flags) {
  const auto model = zoo::find_model(flags.model);
  const zoo::Recipe recipe = choose_recipe(flags, *model);
  const int size = flags.image_size.value_or(recipe.image_size);
  const loop::OptimizerOptions optimizer = choose_optimizer(flags, recipe);
  TrainingSpec spec{
      flags,
      model,
      {size, size, 3},
      flags.batch.value_or(recipe.batch),
      flags.epochs.value_or(recipe.epochs),
      flags.seed.value_or(0),
      optimizer,
      choose_learning_rate(flags, recipe, optimizer.rule),
      choose_plan(flags, recipe),
      choose_shuffle(flags, recipe),
      {flags.resize.value_or(recipe.resize.way), flags.fit.value_or(recipe.resize.fit)},
      flags.augment.value_or(recipe.augment)};
  check_shard_dense(flags);
  exchange::check_compression(flags.compress, flags.allreduce);
  // Says early, on every rank alike, that an image is too small.
  build_graph(spec, flags.classes.value_or(recipe.classes));
  return spec;
}

data::ImageForm image_form(const TrainingSpec& spec) {
  return {spec.image, spec.resize, data::kept_sides(spec.augment)};
}

void follow_ready_form(TrainingSpec& spec, const data::DataSource& source) {
  const auto form = source.dataset->ready_form();
  if (!form) return;
  if (!spec.flags.resize) spec.resize.way = form->resize.way;
  if (!spec.flags.fit) spec.resize.fit = form->resize.fit;
}

void fit_to_ranks(TrainingSpec& spec, int ranks) {
  const TrainingFlags& flags = spec.flags;
  if (flags.batch_per_rank) {
    spec.batch = *flags.batch_per_rank * static_cast<std::size_t>(ranks);
  }
  const auto accumulate = static_cast<std::size_t>(spec.plan.accumulate);
  spec.learning_rate.n = scaling_of(flags, spec.batch * accumulate, ranks);
}

std::size_t largest_growth(const data::PlanOptions& plan) {
  int factor = 1;
  for (const data::BatchGrowth& growth : plan.growth) factor = std::max(factor, growth.factor);
  return static_cast<std::size_t>(factor);
}

}  // namespace cputrain::training
