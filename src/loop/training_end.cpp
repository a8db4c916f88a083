#include "loop/training_end.h"

#include <algorithm>

namespace cputrain::loop {

bool steps_are_made(const TrainOptions& options, const Progress& progress) {
  if (!options.steps || progress.steps < *options.steps) return false;
  return progress.settled_steps >= options.settled_steps ||
         progress.steps >= kMostWarmUp * *options.steps;
}

bool target_is_reached(const TrainOptions& options, const Progress& progress) {
  return options.target_accuracy && progress.reached &&
         progress.reached->accuracy >= *options.target_accuracy;
}

bool waited_enough(const TrainOptions& options, const Progress& progress) {
  return options.patience && progress.patience.waited >= std::max(*options.patience, 1);
}

bool is_over(const TrainOptions& options, const Progress& progress) {
  return target_is_reached(options, progress) || waited_enough(options, progress) ||
         steps_are_made(options, progress) || (!options.steps && progress.epochs >= options.epochs);
}

}  // namespace cputrain::loop
