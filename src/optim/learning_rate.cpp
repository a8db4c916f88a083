#include "optim/learning_rate.h"

#include <algorithm>
#include <cmath>

namespace cputrain::optim {

double scale_factor(RateScale scale, double n) {
  switch (scale) {
    case RateScale::none:
      return 1;
    case RateScale::linear:
      return n;
    case RateScale::sqrt:
      return std::sqrt(n);
    case RateScale::pow23:
      return std::pow(n, 2.0 / 3.0);
  }
  return 1;
}

double full_rate(const LearningRateOptions& options) {
  return options.base * scale_factor(options.scale, options.n.value_or(1));
}

LearningRate::LearningRate(const LearningRateOptions& options, double training_epochs)
    : options_(options), training_epochs_(training_epochs), target_(full_rate(options)) {}

double LearningRate::warmup(double epochs) const {
  const double part = std::min(epochs / options_.warmup_epochs, 1.0);
  if (!options_.n) return target_ * part;
  const double n = std::max(*options_.n, 1.0);  // a batch below the base's has nothing to rise from
  return target_ / n * (part * (n - 1) + 1);
}

double LearningRate::at(const StepTime& time) const {
  const double done = time.epochs_done();
  if (done < options_.warmup_epochs) {
    return plateau_.factor * warmup(done + 1 / static_cast<double>(time.steps));
  }
  const double scheduled = training_epochs_ - options_.warmup_epochs;
  const double fraction = scheduled > 0 ? (done - options_.warmup_epochs) / scheduled : 1;
  return plateau_.factor * target_ *
         schedule_factor(options_.schedule, {done, fraction, time.total});
}

void LearningRate::epoch_ended(const Score& score) {
  const auto* plateau = std::get_if<Plateau>(&options_.schedule);
  if (!plateau) return;
  constexpr double kLeast = 1e-4;  // Keras' min_delta
  if (is_better(score, plateau_.best_loss, plateau_.best_accuracy, kLeast)) {
    plateau_.best_loss = score.loss;
    plateau_.best_accuracy = followed_accuracy(score);
    plateau_.waited = 0;
  } else if (++plateau_.waited >= plateau->patience) {
    plateau_.factor *= plateau->factor;
    plateau_.waited = 0;
  }
}

}  // namespace cputrain::optim
