#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "training/plan/training_plan.h"

namespace cputrain::training {

/// How both parts of the data are cut into steps, for this rank.
struct BatchPlans {
  data::BatchPlan train, validation;

  /// Numbers of images that are computed at once in either, each once, ascending.
  std::vector<int> sizes() const;
};

/// Error(usage) where no step would be left: --drop-last with a batch larger than the data, or a
/// generator that stops before its first batch.
void check_steps(const TrainingSpec&, const data::BatchPlan&);

/// Validation runs as many images at once on every rank as training does, and the same chunks at
/// any number of ranks. Error(usage) as in check_steps().
BatchPlans cut_batches(const Session&, const TrainingPlan&, std::size_t train_images,
                       std::size_t validation_images);

/// Steps of a whole training: `steps` of them, else those of its epochs, which may grow.
std::uint64_t all_steps(const data::BatchPlan&, int epochs, std::optional<std::uint64_t> steps);

/// Images of every rank in the first step, whatever the sharding.
std::vector<std::size_t> images_by_rank(const data::BatchPlan&);

}  // namespace cputrain::training
