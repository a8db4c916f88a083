#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "loop/records.h"
#include "optim/learning_rate.h"

namespace cputrain::loop {

/// The epoch with the best validation, by what TrainingEnd::monitor follows: its weights are the
/// best ones.
struct BestEpoch {
  double loss = std::numeric_limits<double>::infinity();
  int epoch = 0;                     ///< from 1; 0: none yet
  std::optional<double> accuracy{};  ///< where it is what was followed

  bool is_by(optim::Monitor monitor) const {
    return accuracy.has_value() == (monitor == optim::Monitor::accuracy);
  }
};

/// What early stopping waits for: a validation that is better enough than this one.
struct Patience {
  double loss = std::numeric_limits<double>::infinity();
  int waited = 0;                    ///< epochs since then
  std::optional<double> accuracy{};  ///< where it is what is followed
};

/// Where a training is between two steps and what it has added up so far: what must be known beside
/// the arrays (weights, optimizer state, remainders of compression) to go on as if nothing had
/// happened. Random numbers, order and augmentation are functions of it. The same on all ranks but
/// for `own_images` and the times.
struct Progress {
  std::uint64_t steps = 0;    ///< made
  std::uint64_t skipped = 0;  ///< of these, that changed nothing
  std::uint64_t settled_steps = 0;
  std::uint64_t images = 0;  ///< seen in whole epochs
  int epochs = 0;            ///< that have ended, validation included
  /// An epoch of which some steps are made, or all, and which has not ended. Times are this rank's.
  std::optional<EpochSums> begun{};
  double seconds = 0;           ///< training and validation
  double training_seconds = 0;  ///< in epochs that have ended
  double own_images = 0;        ///< this rank's, trained on since statistics were averaged
  optim::PlateauState plateau{};
  double last_rate = 0;  ///< the optimizer's: momentum correction compares with it
  BestEpoch best{};
  Patience patience{};
  std::optional<TimeToAccuracy> reached{};  ///< the target accuracy
  std::vector<std::uint64_t> left_out{};    ///< steps, from 1, that a rollback goes on without
  /// How the program computes, where it measured that (compute::Tuner::tuned_methods()); empty: it
  /// was still trying, or has nothing to try.
  std::string tuned_methods{};
};

/// What a call of train() came to.
struct TrainResult {
  Progress progress{};                ///< at its end; seconds and steps before its start included
  bool stopped = false;               ///< before the end: on request, or for lost input
  std::optional<EpochRecord> last{};  ///< nothing where no epoch ended in this call
  bool early_stopped = false;         ///< the patience came to its end
  /// The step, from 1, that made gradients NaN or infinite, where the policy is to roll back: its
  /// update was not made, and nothing after it was.
  std::optional<std::uint64_t> roll_back{};
  /// Why images were not the data's any more; empty where they were. The training has stopped after
  /// the last step that was made of the data.
  std::string lost_input{};
};

/// What ends a training.
struct TrainingEnd {
  int epochs = 1;
  std::optional<std::uint64_t> steps{};  ///< ends it after so many, whatever `epochs` says
  /// With `steps`: goes on until so many whole steps were settled (they tried no algorithms, and
  /// were not the first), but makes no more than kMostWarmUp times `steps`.
  std::uint64_t settled_steps = 0;
  std::optional<double> target_accuracy{};  ///< of validation: ends it when reached
  /// Ends it where the validation has not got better by more than `min_delta` for so many epochs.
  std::optional<int> patience{};
  double min_delta = 0;
  /// What "better" means: for patience, the best weights and a plateau. Ends nothing by itself.
  optim::Monitor monitor = optim::Monitor::loss;
};

/// A training that waits for settled steps and never sees them must end, too.
inline constexpr std::uint64_t kMostWarmUp = 10;

/// Whether --steps ends the training here.
inline bool steps_are_made(const TrainingEnd& end, const Progress& progress) {
  if (!end.steps || progress.steps < *end.steps) return false;
  return progress.settled_steps >= end.settled_steps || progress.steps >= kMostWarmUp * *end.steps;
}
/// Whether the epoch that was validated last has the accuracy that is asked for.
inline bool target_is_reached(const TrainingEnd& end, const Progress& progress) {
  return end.target_accuracy && progress.reached &&
         progress.reached->accuracy >= *end.target_accuracy;
}
/// Whether it was waited long enough for a better epoch. As Keras does, a patience of 0 waits for
/// the first epoch that is no better, too.
inline bool waited_enough(const TrainingEnd& end, const Progress& progress) {
  return end.patience && progress.patience.waited >= std::max(*end.patience, 1);
}
/// Any of these, or the last epoch. Nothing more is made then of an epoch that has begun.
inline bool is_over(const TrainingEnd& end, const Progress& progress) {
  return target_is_reached(end, progress) || waited_enough(end, progress) ||
         steps_are_made(end, progress) || (!end.steps && progress.epochs >= end.epochs);
}

}  // namespace cputrain::loop
