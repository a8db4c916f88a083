#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/names.h"

/// The learning rate of every step: how it changes during training, as data, and which figure of
/// validation it may follow. Epochs are those completed, with fractions: 0 at the first step, 30
/// when thirty are done.
namespace cputrain::optim {

struct ConstantRate {
  bool operator==(const ConstantRate&) const = default;
};

/// Times `factor` after every `epochs` epochs.
struct StepDecay {
  double epochs = 30;
  double factor = 0.1;
  bool operator==(const StepDecay&) const = default;
};

/// From each piece's epoch on `factor` times the full rate (not times the rate before).
struct PiecewiseRate {
  struct Piece {
    double epoch;
    double factor;
    bool operator==(const Piece&) const = default;
  };
  std::vector<Piece> pieces;  ///< epochs ascend
  bool operator==(const PiecewiseRate&) const = default;
};

/// Half a cosine from the full rate to `floor` times it at the end (Loshchilov and Hutter, "SGDR",
/// without restarts; Keras' CosineDecay with alpha = floor).
struct CosineDecay {
  double floor = 0;
  bool operator==(const CosineDecay&) const = default;
};

/// (1 - progress)^power, from the full rate to `floor` times it (Keras' PolynomialDecay; the LARS
/// paper has power 2).
struct PolynomialDecay {
  double power = 1;
  double floor = 0;
  bool operator==(const PolynomialDecay&) const = default;
};

/// Times `factor` whenever the loss of validation has not fallen, or its accuracy not risen
/// (Monitor), by 0.0001 for `patience` epochs (Keras' ReduceLROnPlateau): the only
/// schedule that depends on how the training goes.
struct Plateau {
  int patience = 10;
  double factor = 0.1;
  bool operator==(const Plateau&) const = default;
};

/// The full rate / (1 + decay * steps done): Keras' optimizer argument `decay`.
struct InverseTimeDecay {
  double decay = 0;
  bool operator==(const InverseTimeDecay&) const = default;
};

using Schedule = std::variant<ConstantRate, StepDecay, PiecewiseRate, CosineDecay, PolynomialDecay,
                              Plateau, InverseTimeDecay>;

/// The value of --schedule: "constant", "step:30:0.1", "piecewise:30:0.1,60:0.01", "cosine[:0.01]",
/// "poly[:2[:0.01]]", "plateau[:10[:0.1]]", "decay:1e-6". Error(usage) names the text and the
/// forms.
Schedule parse_schedule(std::string_view text);
/// The same text again, with all figures.
std::string schedule_text(const Schedule&);

/// For --help: "constant, step:EPOCHS:FACTOR, ...".
std::string schedule_forms();
/// What a value begins with: "constant", "step:", ...
std::vector<std::string> schedule_words();

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
