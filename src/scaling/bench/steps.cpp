#include "scaling/bench/steps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "system/clock.h"
#include "system/lost_time.h"
#include "system/usage/work_meter.h"

namespace cputrain::bench {
namespace {

/// Steps worth measuring by default: the clock of a shared machine changes from second to second,
/// so a median of short steps wants many.
int usual_steps(double seconds) {
  constexpr double kSeconds = 8;
  constexpr double kLeast = 5, kMost = 25;
  return static_cast<int>(std::clamp(std::ceil(kSeconds / seconds), kLeast, kMost));
}

/// Steps that are long enough together to see stolen time: it is counted in ticks of 10 ms, and a
/// round may lose a fiftieth of its time.
int steps_of_a_round(const training::Session& session, double seconds) {
  constexpr double kCpuSeconds = 1;
  return static_cast<int>(std::ceil(kCpuSeconds / (seconds * session.most_threads)));
}

/// The part that the rank lost that lost most, since the others wait for it.
std::optional<double> most_stolen(const training::Session& session,
                                  const system::PartSinceLast& stolen) {
  return comm::largest_of_ranks(*session.communicator, stolen());
}

/// The machine's limits, of a few attempts the best until one was not disturbed.
compute::Limits calm_limits(const training::Session& session) {
  constexpr int kAttempts = 4;
  compute::Limits limits;
  const auto stolen = system::watch_stolen(session.place().cpus);
  for (int i = 0; i < kAttempts; ++i) {
    limits = compute::better(limits, training::measure_together(session));
    if (most_stolen(session, stolen).value_or(0) <= CalmRounds::kCalm) break;
  }
  return limits;
}

using Trials = std::vector<std::unique_ptr<StepTrial>>;

/// Rounds of so many steps of each trial, until enough were calm.
void measure(const training::Session& session, const Trials& trials, int each, CalmRounds& rounds) {
  const auto stolen = system::watch_stolen(session.place().cpus);
  while (!rounds.enough()) {
    for (int i = 0; i < each; ++i) {
      for (const auto& trial : trials) trial->measure();
    }
    rounds.add(most_stolen(session, stolen));
  }
}

}  // namespace

std::string first_clause(const std::string& message) {
  return message.substr(0, message.find(" ("));
}

StepTrial::StepTrial(const training::Session& session, training::TrainingPlan plan,
                     std::shared_ptr<const data::DataSource> source,
                     std::shared_ptr<const data::DecodedData> data)
    : training_(session, std::move(plan), std::move(source)) {
  training_.load(std::move(data));
  training_.start();
}

bool StepTrial::is_long(double seconds) const {
  constexpr double kLong = 2;
  return seconds > kLong && !training_.session().device.chosen();
}

bool StepTrial::still_trying() const {
  const double own = training_.compiled().program->tuner().trying() ? 1 : 0;
  return *comm::largest_of_ranks(*training_.session().communicator, own) > 0;
}

double StepTrial::warm_up() {
  constexpr int kMostTrials = 24;
  for (int i = 0; i < kMostTrials; ++i) {
    const double seconds = *comm::largest_of_ranks(*training_.session().communicator, step());
    if (is_long(seconds) && !still_trying()) return seconds;
    if (!steps_.tried()) break;
  }
  return step();
}

void StepTrial::measure() {
  const double before = system::cpu_seconds();
  rates_.push_back(static_cast<double>(plan().images(0)) / step());
  cpu_seconds_.push_back(system::cpu_seconds() - before);
}

std::vector<compute::LayerTime> StepTrial::measure_layers(int steps) {
  return layers_in([&] {
    for (int i = 0; i < steps; ++i) step();
  });
}

std::vector<compute::LayerTime> StepTrial::layers_in(const std::function<void()>& steps) {
  compute::Program& program = *training_.compiled().program;
  program.time_layers(true);
  const std::vector<compute::LayerTime> before = program.layer_times();
  steps();
  program.time_layers(false);
  return compute::difference(program.layer_times(), before);
}

double StepTrial::step() {
  constexpr double kRate = 0;
  const system::Stopwatch watch;
  steps_.begin_epoch(kRate);
  return watch.seconds();
}

StepFigures run_trials(const training::Session& session, const Trials& trials,
                       std::optional<int> wanted) {
  const compute::Limits before = calm_limits(session);
  double seconds = 0;
  for (const auto& trial : trials) seconds += trial->warm_up();
  seconds = comm::mean_of_ranks(*session.communicator, seconds);
  const int steps = wanted ? *wanted : usual_steps(seconds);
  const int each = std::min(steps, steps_of_a_round(session, seconds));
  CalmRounds rounds((steps + each - 1) / each);
  const auto wait = system::watch_cpu_wait();
  StepTrial& first = *trials.front();
  const bool together = first.is_long(seconds / static_cast<double>(trials.size()));
  std::vector<compute::LayerTime> layers;
  if (together) {
    layers = first.layers_in([&] { measure(session, trials, each, rounds); });
  } else {
    measure(session, trials, each, rounds);
  }
  const auto waited = comm::largest_of_ranks(*session.communicator, wait());
  std::vector<Spread> rates;
  for (const auto& trial : trials) {
    rates.push_back(spread_of(rounds.counted_of(trial->images_per_second())));
  }
  const int layer_steps = together ? each * static_cast<int>(rounds.measured()) : (steps + 2) / 3;
  if (!together) layers = first.measure_layers(layer_steps);
  return {compute::better(before, calm_limits(session)),
          std::move(rounds),
          each,
          std::move(rates),
          layer_steps,
          std::move(layers),
          waited};
}

}  // namespace cputrain::bench
