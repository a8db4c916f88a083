#pragma once

#include <optional>

#include "compute/leaf_program.h"
#include "job/build_graph.h"
#include "job/session.h"
#include "job/training_spec.h"
#include "train/step.h"

/// From flags and a recipe to the parts of a training: shared by `train` and `bench step`.
namespace cputrain {

namespace safetensors {
class File;
}

/// Error(usage) where no step would be left: --drop-last with a batch larger than the data, or a
/// generator that stops before its first batch.
void check_steps(const TrainingSpec&, const BatchPlan&);

/// How many images a rank computes at once in training: what was asked; with batch normalization
/// else the whole share, since statistics cover a micro-batch; of a rank alone an even part of a
/// batch that does not grow. Error(usage) where --sync-bn cannot be had.
int training_micro_batch(const TrainingSpec&, const Session&, const Graph&);

/// With --reproducible: a leaf is a micro-batch, each thread of each rank computes one at a time.
/// Ranks with more threads than others leave those idle. Nothing without the flag.
std::optional<Leaves> leaves_of(const TrainingSpec&, const Session&);

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
std::unique_ptr<Training> make_training(const Session&, const Services&, const TrainingSpec&,
                                        const Graph&, const DataSource&, const ImageSet&,
                                        const BatchPlan& plan, CompiledTraining);

/// How training's batches are to be made.
BatchRequest batch_request(const Session&, const TrainingSpec&);

/// Sizes of both plans, each once.
std::vector<int> sizes_of(const BatchPlan&, const BatchPlan&);

}  // namespace cputrain
