#pragma once

#include <limits>
#include <optional>
#include <string>

#include "core/names.h"
#include "optim/schedule.h"

namespace cputrain::optim {

/// How the rate grows with the batch: not, in proportion ("linear", Goyal et al. 2017), with its
/// square root, or with its power 2/3.
enum class RateScale { none, linear, sqrt, pow23 };
constexpr auto names(RateScale) {
  return std::to_array<Name<RateScale>>({{RateScale::none, "none"},
                                         {RateScale::linear, "linear"},
                                         {RateScale::sqrt, "sqrt"},
                                         {RateScale::pow23, "pow23"}});
}

/// What a rate is multiplied by when n times as many images go into a step.
double scale_factor(RateScale, double n);

struct LearningRateOptions {
  double base = 0.001;  ///< before scaling
  RateScale scale = RateScale::none;
  /// What scaling and warm-up count with: the ranks, or batch / base batch. Nothing where neither
  /// is meant; warm-up then begins at zero.
  std::optional<double> n{};
  double warmup_epochs = 0;
  Schedule schedule = ConstantRate{};
};

/// After warm-up, before any schedule.
double full_rate(const LearningRateOptions&);

/// Where a step lies in the training.
struct StepTime {
  int epoch = 0;            ///< from 0
  std::size_t step = 0;     ///< in the epoch, from 0
  std::size_t steps = 1;    ///< in this epoch
  std::uint64_t total = 0;  ///< steps done in the training

  double epochs_done() const {
    return epoch + static_cast<double>(step) / static_cast<double>(steps);
  }
};

/// What a plateau has seen of the validations.
struct PlateauState {
  double best_loss = std::numeric_limits<double>::infinity();
  int waited = 0;     ///< epochs since then
  double factor = 1;  ///< for the rate
  std::optional<double>
      best_accuracy{};  ///< where it is what is followed; the loss is that epoch's
};

/// The rate of every step: scaled, warmed up, then by the schedule. The same on every rank.
class LearningRate {
 public:
  /// `training_epochs`: how long the training is, for schedules that end with it.
  LearningRate(const LearningRateOptions&, double training_epochs);

  /// The full rate: what warm-up ends at and the schedule begins with.
  double target() const { return target_; }

  /// Warm-up is Horovod's: at the end e of the step, in epochs, target / n * (e * (n - 1) / warm-up
  /// + 1), which rises from the unscaled rate to the target; with no n, target * e / warm-up.
  double at(const StepTime&) const;

  /// An epoch's validation, which a plateau follows.
  void epoch_ended(const Score&);

  /// For a training that goes on later.
  const PlateauState& plateau() const { return plateau_; }
  void set_plateau(const PlateauState& plateau) { plateau_ = plateau; }

 private:
  double warmup(double epochs) const;

  LearningRateOptions options_;
  double training_epochs_, target_;
  PlateauState plateau_;
};

}  // namespace cputrain::optim
