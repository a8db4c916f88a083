#include "loop/progress.h"

#include <algorithm>

namespace cputrain::loop {

bool steps_are_made(const TrainingEnd& end, const Progress& progress) {
  if (!end.steps || progress.steps < *end.steps) return false;
  return progress.settled_steps >= end.settled_steps || progress.steps >= kMostWarmUp * *end.steps;
}

bool target_is_reached(const TrainingEnd& end, const Progress& progress) {
  return end.target_accuracy && progress.reached &&
         progress.reached->accuracy >= *end.target_accuracy;
}

bool waited_enough(const TrainingEnd& end, const Progress& progress) {
  return end.patience && progress.patience.waited >= std::max(*end.patience, 1);
}

bool is_over(const TrainingEnd& end, const Progress& progress) {
  return target_is_reached(end, progress) || waited_enough(end, progress) ||
         steps_are_made(end, progress) || (!end.steps && progress.epochs >= end.epochs);
}

}  // namespace cputrain::loop
