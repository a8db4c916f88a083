#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "compute/tally.h"
#include "logging/reporter.h"
#include "optim/learning_rate.h"

namespace cputrain::loop {

/// An epoch of which some steps are made, or all, and which has not ended.
struct BegunEpoch {
  std::size_t steps = 0;    ///< made
  std::size_t skipped = 0;  ///< of these, without an update (--on-nan)
  compute::Tally train{};   ///< sums over these steps and all ranks
  double seconds = 0;       ///< of this rank, as the two below
  Budget budget{};
  logging::SettledSteps settled{};
  double learning_rate = 0;  ///< of its last step
};

/// The epoch with the lowest loss of validation: its weights are the best ones.
struct BestEpoch {
  double loss = std::numeric_limits<double>::infinity();
  int epoch = 0;  ///< from 1; 0: none yet
};

/// What early stopping waits for: a loss of validation that is enough lower than this one.
struct Patience {
  double loss = std::numeric_limits<double>::infinity();
  int waited = 0;  ///< epochs since then
};

/// Where a training is between two steps and what it has added up so far: what must be known beside
/// the arrays (weights, optimizer state, remainders of compression) to go on as if nothing had
/// happened. Random numbers, order and augmentation are functions of it. The same on all ranks but
/// for `own_images` and the times.
struct Progress {
  std::uint64_t steps = 0;  ///< made
  std::uint64_t settled_steps = 0;
  std::uint64_t images = 0;  ///< seen in whole epochs
  int epochs = 0;            ///< that have ended, validation included
  std::optional<BegunEpoch> begun{};
  double seconds = 0;           ///< of training and validation
  double training_seconds = 0;  ///< of epochs that have ended
  double own_images = 0;        ///< of this rank, trained on since statistics were averaged
  optim::PlateauState plateau{};
  double last_rate = 0;  ///< the optimizer's: momentum correction compares with it
  BestEpoch best{};
  Patience patience{};
  std::optional<logging::TimeToAccuracy> reached{};
  std::vector<std::uint64_t> left_out{};  ///< steps, from 1, that a rollback goes on without
  /// How the program computes, where it measured that (compute::Tuner::findings()); empty: it
  /// was still trying, or has nothing to try.
  std::string findings{};
};

}  // namespace cputrain::loop
