#pragma once

#include <cstdint>
#include <optional>

#include "loop/progress.h"

namespace cputrain::loop {

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
bool steps_are_made(const TrainingEnd&, const Progress&);
/// Whether the epoch that was validated last has the accuracy that is asked for.
bool target_is_reached(const TrainingEnd&, const Progress&);
/// Whether it was waited long enough for a better epoch. As Keras does, a patience of 0 waits for
/// the first epoch that is no better, too.
bool waited_enough(const TrainingEnd&, const Progress&);
/// Any of these, or the last epoch. Nothing more is made then of an epoch that has begun.
bool is_over(const TrainingEnd&, const Progress&);

}  // namespace cputrain::loop
