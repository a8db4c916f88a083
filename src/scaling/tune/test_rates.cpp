#include "scaling/tune/test_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/error.h"
#include "core/statistics/statistics.h"
#include "data/batch_plan.h"
#include "loop/observer.h"
#include "loop/step.h"
#include "scaling/tune/work_left.h"
#include "system/clock.h"

namespace cputrain::tune {
namespace {

/// Steps one after another, epoch after epoch.
class Steps {
 public:
  explicit Steps(training::Training& training)
      : training_(training), observer_(training.parts()), plan_(parts().plan.in_epoch(0)) {
    parts().batches->seek(0, 0);
  }

  /// The mean loss of the next step.
  double next(double rate) {
    if (in_epoch_ == plan_.steps()) {
      plan_ = parts().plan.in_epoch(++epoch_);
      in_epoch_ = 0;
      parts().batches->seek(epoch_, 0);
    }
    const std::uint64_t seed = training_.plan().spec.seed;
    const std::uint64_t number = done_++;
    loop::StepResult step = loop::run_step(parts(), observer_,
                                           {.plan = plan_,
                                            .in_epoch = in_epoch_++,
                                            .step = number,
                                            .updates = number,
                                            .seed = seed,
                                            .learning_rate = rate});
    if (!step.lost_input.empty()) fail(ExitCode::data, step.lost_input);
    loop::agree(parts(), observer_, {}, {}, step);
    return loop::finish_step(parts().communicator, step).mean_loss();
  }

 private:
  loop::Parts& parts() { return training_.parts(); }

  training::Training& training_;
  loop::Observer observer_;
  data::BatchPlan plan_;  ///< for the epoch
  int epoch_ = 0;
  std::size_t in_epoch_ = 0;
  std::uint64_t done_ = 0;
};

/// Says how long the test takes, once some steps were made: the first is longer, since algorithms
/// are tried in it. Steps of images that were met before, of which what frozen layers make is kept,
/// are shorter.
class Duration {
 public:
  Duration(const training::Training& training, int steps) : training_(training), steps_(steps) {}

  void made(double seconds) {
    constexpr std::size_t kEnough = 5;
    made_.push_back(seconds);
    if (made_.size() != std::min(kEnough, static_cast<std::size_t>(steps_))) return;
    say(median({made_.begin() + 1, made_.end()}));
  }

 private:
  void say(double step) const {
    const double in_epoch = static_cast<double>(training_.batches().train.steps()),
                 kept = training_.compiled().kept_features;
    const double seconds = step * computed(steps_, in_epoch, kept);
    training::say(training_.session(),
                  fmt::format("Rate test: up to {} steps, {} by the first ones; it ends where the "
                              "loss diverges",
                              steps_,
                              kept > 0 ? "about " + about_text(seconds)
                                       : "at most about " + most_text(seconds)));
  }

  const training::Training& training_;
  int steps_;
  std::vector<double> made_;
};

}  // namespace

RateCurve test_rates(training::Training& training, const RateRange& range) {
  const data::OnProgress progress = training::progress_line(training.session(), "Rate test: step");
  const auto all = static_cast<std::size_t>(range.steps);
  RateCurve curve{range, {}};
  Steps steps(training);
  DivergenceWatch watch;
  Duration duration(training, range.steps);
  for (int i = 0; i < range.steps; ++i) {
    const system::Stopwatch step;
    const double loss = steps.next(range.at(i));
    duration.made(step.seconds());
    if (std::isfinite(loss)) curve.losses.push_back(loss);
    if (watch.add(loss)) {
      curve.end = std::isfinite(loss) ? TestEnd::diverged : TestEnd::not_finite;
      curve.diverged_at = range.at(i);
      break;
    }
    if (progress) progress(static_cast<std::size_t>(i) + 1, all);
  }
  if (progress) progress(all, all);
  return curve;
}

}  // namespace cputrain::tune
