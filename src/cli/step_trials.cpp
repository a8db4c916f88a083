#include "cli/step_trials.h"

#include <algorithm>
#include <cmath>

#include "core/stolen_time.h"

namespace cputrain {

StepTrial::StepTrial(const Session& session, const Services& services, const Config& config,
                     const TrainingChoices& choices, const Graph& graph, const DecodedData& data,
                     const DataSource& source)
    : session_(session),
      seed_(choices.seed),
      plan_(data.train.size(), choices.batch, training_micro_batch(config, session, graph, choices),
            session.communicator->rank(), session.communicator->size(), choices.plan),
      training_(make_training(session, services, config, choices, graph, data.train, plan_,
                              compiled(services, config, choices, graph, source))) {
  check_steps(config, choices, plan_);
}

CompiledTraining StepTrial::compiled(const Services& services, const Config& config,
                                     const TrainingChoices& choices, const Graph& graph,
                                     const DataSource& source) const {
  // The pictures are in memory already, those in flight are not.
  const InputMemory input{
      0, services.data.batch_bytes(source, choices.image, plan_, batch_request(session_, choices))};
  return compile_training(session_, services, config, choices, graph, plan_.sizes(),
                          measure_rooms(session_), input);
}

TrainingParts StepTrial::parts() {
  return {*session_.backend,         *training_->program,
          *training_->exchange,      *training_->optimizer,
          *training_->learning_rate, *session_.communicator,
          *training_->batches,       plan_,
          training_->weights_mutex,  timeline_};
}

double StepTrial::warm_up() {
  constexpr int kMostTrials = 16;
  for (int i = 0; i < kMostTrials && step().trying;) ++i;
  const double seconds = step().seconds;
  before_ = training_->program->layer_times();
  return seconds;
}

void StepTrial::measure() {
  rates_.push_back(static_cast<double>(plan_.images(0)) / step().seconds);
}

std::vector<LayerTime> StepTrial::layer_times() const {
  return difference(training_->program->layer_times(), before_);
}

StepResult StepTrial::step() {
  constexpr double kRate = 0;
  const TrainingParts all = parts();
  all.batches.seek(done_, 0);
  session_.communicator->barrier();
  const auto number = static_cast<std::uint64_t>(done_++);
  return run_step(all, {plan_, 0, number, seed_, kRate}, [] { return false; });
}

namespace {

/// Steps worth measuring where nobody says: the clock of a shared machine changes from second to
/// second, so a median of short steps wants many. The same on all ranks.
int usual_repeats(const Session& session, double seconds) {
  constexpr double kSeconds = 8;
  constexpr double kLeast = 5, kMost = 25;
  session.communicator->sum(Array::of<double>({&seconds, 1}));
  const double mean = seconds / session.communicator->size();
  return static_cast<int>(std::clamp(std::ceil(kSeconds / mean), kLeast, kMost));
}

/// The part of the ranks' CPU time that was stolen since the last question: the same on all ranks.
double stolen_together(const Session& session, StolenTime& stolen) {
  double sum = stolen.lap();
  session.communicator->sum(Array::of<double>({&sum, 1}));
  return sum / session.communicator->size();
}

}  // namespace

StepFigures run_trials(const Session& session,
                       const std::vector<std::unique_ptr<StepTrial>>& trials,
                       std::optional<int> wanted) {
  const Limits before = measure_together(session);
  double seconds = 0;
  for (const auto& trial : trials) seconds += trial->warm_up();
  CalmRounds rounds(wanted ? *wanted : usual_repeats(session, seconds));
  StolenTime stolen(session.place().cpus);
  while (!rounds.enough()) {
    for (const auto& trial : trials) trial->measure();
    rounds.add(stolen_together(session, stolen));
  }
  std::vector<Spread> rates;
  for (const auto& trial : trials) {
    rates.push_back(spread_of(rounds.of(trial->images_per_second())));
  }
  return {better(before, measure_together(session)), std::move(rounds), std::move(rates)};
}

}  // namespace cputrain
