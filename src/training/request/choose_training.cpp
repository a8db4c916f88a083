#include "training/request/choose_training.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "training/request/build_graph.h"
#include "training/request/recipe_choices.h"

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
  const std::string obstacle = sharding_obstacle(flags);
  if (flags.shard_dense.value_or(false) && !obstacle.empty()) refuse_sharding(obstacle);
  exchange::check_compression(flags.compress, flags.allreduce);
  // Says early, on every rank alike, that an image is too small.
  build_graph(spec, flags.classes.value_or(recipe.classes));
  return spec;
}

std::string sharding_obstacle(const TrainingFlags& flags) {
  if (flags.reproducible)
    return "--reproducible (the order of additions would depend on the ranks)";
  using Scheme = comm::AllreduceChoice::Scheme;
  const Scheme scheme = flags.allreduce.scheme;
  if (scheme == Scheme::replicas || scheme == Scheme::server) {
    return fmt::format(
        "--allreduce {} (gradients must lie in the node's shared memory: auto, shm, "
        "hierarchical)",
        comm::to_text(flags.allreduce));
  }
  if (flags.compress != exchange::Compression{} && scheme == Scheme::automatic) {
    return fmt::format(
        "--compress {} (within one node it needs a replica on every rank; on several, say "
        "--allreduce hierarchical)",
        exchange::to_text(flags.compress));
  }
  return "";
}

void refuse_sharding(const std::string& why) {
  fail(ExitCode::usage, fmt::format("--shard-dense with {}; leave one of them out", why));
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
