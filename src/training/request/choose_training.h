#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/shape.h"
#include "data/batch_plan.h"
#include "data/pipeline.h"
#include "loop/optimizer.h"
#include "model/graph.h"
#include "optim/learning_rate.h"
#include "training/request/training_flags.h"
#include "zoo/zoo.h"

namespace cputrain::training {

/// A training with everything decided that flags and the model's recipe decide. Pure data: it knows
/// no ranks, no data and no machine yet.
struct TrainingSpec {
  TrainingFlags flags;  ///< as they were given
  std::shared_ptr<const zoo::ModelEntry> model;
  Shape image;
  std::size_t batch;  ///< over all ranks, once their number is known
  int epochs;
  std::uint64_t seed;
  loop::OptimizerOptions optimizer;
  optim::LearningRateOptions learning_rate;
  data::PlanOptions plan;
  bool shuffle = true;
  data::Resizing resize{};
  data::Augment augment{};
};

/// The model's recipe with what the flags change. Throws Error(usage) on combinations that make no
/// sense (rho with Adam), before any rank waits for another.
TrainingSpec choose_training(const TrainingFlags&);

/// Outputs of the last layer: --classes, or those of the data. Error(usage) where the data has
/// more.
int classes_of(const TrainingSpec&, const data::DataSource&);

/// The network for these classes. Error(usage) where the image is too small for it.
model::Graph build_graph(const TrainingSpec&, int classes);

/// Why flags keep the ranks of a node from computing dense layers together; empty: nothing does.
std::string sharding_obstacle(const TrainingFlags&);
/// Error(usage): --shard-dense cannot be with `why`.
[[noreturn]] void refuse_sharding(const std::string& why);

/// In which form it wants its images.
data::ImageForm image_form(const TrainingSpec&);

/// Data that has its images ready in one form decides how they were resized, unless flags do.
void follow_ready_form(TrainingSpec&, const data::DataSource&);

/// Completes what depends on the number of ranks: --batch-per-rank, scaling by ranks.
void fit_to_ranks(TrainingSpec&, int ranks);

/// The factor of the largest batch that --batch-growth comes to.
std::size_t largest_growth(const data::PlanOptions&);

/// The recipe of fine-tuning, for a built-in model that begins with --weights; nothing for all
/// other trainings. The recipe of a model file is its writer's.
std::optional<zoo::Recipe> fine_tuning_recipe(const TrainingFlags&, const zoo::ModelEntry&);

}  // namespace cputrain::training
