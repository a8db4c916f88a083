#pragma once

#include <optional>

#include "cli/recipe_choices.h"
#include "cli/session.h"
#include "compute/leaf_program.h"
#include "train/step.h"

/// From flags and a recipe to the parts of a training: shared by `train` and `bench step`.
namespace cputrain {

namespace safetensors {
class File;
}

/// The recipe with everything that the flags change.
struct TrainingChoices {
  std::shared_ptr<const ModelEntry> model;
  Shape image;
  std::size_t batch;  ///< over all ranks, once their number is known
  int epochs;
  std::uint64_t seed;
  OptimizerOptions optimizer;
  LearningRateOptions learning_rate;
  PlanOptions plan;
  bool shuffle = true;
  Resize resize = Resize::bilinear;
  Augment augment{};
};

/// Throws Error(usage) on combinations that make no sense (--rho with Adam), before any rank waits
/// for another.
TrainingChoices choose_training(const Config&);

/// Completes what hangs on the number of ranks: --batch-per-rank, scaling by ranks.
void fit_to_ranks(TrainingChoices&, const Config&, int ranks);

/// Error(usage) where no step would be left: --drop-last with a batch larger than the data, or a
/// generator that stops before its first batch.
void check_steps(const Config&, const TrainingChoices&, const BatchPlan&);

/// Outputs of the last layer: --classes, or those of the data. Error(usage) where the data has
/// more.
int classes_of(const Config&, const DataSource&);

/// The network for these classes. Error(usage) where the picture is too small for it.
Graph build_graph(const Config&, const TrainingChoices&, int classes);

/// How many images a rank computes at once in training: what was asked; with batch normalization
/// else the whole share, since statistics cover a micro-batch; of a rank alone an even part of a
/// batch that does not grow. Error(usage) where --sync-bn cannot be had.
int training_micro_batch(const Config&, const Session&, const Graph&, const TrainingChoices&);

/// With --reproducible: a leaf is a micro-batch, each thread of each rank computes one at a time.
/// Ranks with more threads than others leave those idle. Nothing without the flag.
std::optional<Leaves> leaves_of(const Config&, const Session&);

struct CompiledTraining;  // training_program.h

/// Everything that one training owns, in the order it is made.
struct Training {
  std::shared_ptr<const safetensors::File> start;  ///< open_start(); not needed once it has begun
  std::unique_ptr<GradientExchange> exchange;      ///< owns the arenas that the program works on
  std::unique_ptr<Program> program;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<LearningRate> learning_rate;
  std::unique_ptr<BatchSource> batches;
  std::mutex weights_mutex;
};

/// Makes the rest around a compiled program, and starts every rank from the same weights: those of
/// --weights, put by the names of the data's classes, else initial ones.
std::unique_ptr<Training> make_training(const Session&, const Services&, const Config&,
                                        const TrainingChoices&, const Graph&, const DataSource&,
                                        const ImageSet&, const BatchPlan& plan, CompiledTraining);

/// How training's batches are to be made.
BatchRequest batch_request(const Session&, const TrainingChoices&);

/// The factor of the largest batch that --batch-growth comes to.
std::size_t largest_growth(const PlanOptions&);

/// Sizes of both plans, each once.
std::vector<int> sizes_of(const BatchPlan&, const BatchPlan&);

}  // namespace cputrain
