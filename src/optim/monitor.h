#pragma once

#include <cmath>
#include <optional>

#include "core/names.h"

namespace cputrain::optim {

/// The figure of validation that early stopping, the best weights and a plateau follow.
enum class Monitor { loss, accuracy };
constexpr auto names(Monitor) {
  return std::to_array<Name<Monitor>>({{Monitor::loss, "loss"}, {Monitor::accuracy, "accuracy"}});
}

/// The validation of an epoch, for who follows it.
struct Score {
  double loss = 0;
  double accuracy = 0;  ///< 0 to 1; NaN where the loss is not finite
  Monitor monitor = Monitor::loss;
};

/// The accuracy of a score where it is what is followed.
inline std::optional<double> followed_accuracy(const Score& score) {
  return score.monitor == Monitor::accuracy ? std::optional(score.accuracy) : std::nullopt;
}

/// Whether a score is better by more than `least`: in loss, which is to fall, or in accuracy, which
/// is to rise. `accuracy`: the followed one so far; nothing where none was followed yet, and any is
/// better. What is not finite is no better than anything.
inline bool is_better(const Score& score, double loss, std::optional<double> accuracy,
                      double least) {
  if (score.monitor == Monitor::loss) return score.loss < loss - least;
  if (!accuracy) return std::isfinite(score.accuracy);
  return score.accuracy > *accuracy + least;
}

}  // namespace cputrain::optim
