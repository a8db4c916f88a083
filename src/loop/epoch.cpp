#include "loop/epoch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "loop/safety/replicas.h"
#include "loop/statistics.h"
#include "loop/training_end.h"

namespace cputrain::loop {
namespace {

/// The mean over ranks, so that one line speaks for all of them.
void average_over_ranks(comm::Communicator& communicator, Budget& b, double& seconds) {
  std::array<double*, kBudgetParts.size() + 1> means{};
  std::ranges::transform(kBudgetParts, means.begin(),
                         [&b](const BudgetPart& part) { return &(b.*part.seconds); });
  means.back() = &seconds;
  comm::sum_numbers(communicator, means);
  for (double* mean : means) *mean /= communicator.size();
}

/// Who arrives last waits least: by the seconds that each rank was there and waited for the others,
/// wherever in a step they meet. No rank's clock is compared with another's.
std::optional<logging::Straggler> find_straggler(comm::Communicator& communicator, double own_wait,
                                                 const std::vector<std::string>& hosts) {
  const std::vector<double> waits = comm::gather_values(communicator, own_wait);
  if (waits.size() < 2) return {};
  const auto least = std::ranges::min_element(waits);
  const double others = std::accumulate(waits.begin(), waits.end(), -*least);
  const auto rank = static_cast<std::size_t>(least - waits.begin());
  return logging::Straggler{static_cast<int>(rank), rank < hosts.size() ? hosts[rank] : "",
                            others / static_cast<double>(waits.size() - 1) - *least};
}

void check_loss(const logging::StepRecord& record) {
  if (record.tally.is_number()) return;
  fail(ExitCode::failed,
       fmt::format("Batch {}: Invalid loss, terminating training (it is NaN or infinite in epoch "
                   "{}); try a smaller --lr",
                   record.step_in_epoch - 1, record.epoch));
}

/// All ranks see the same steps as settled.
void settle(logging::SettledSteps& settled, const StepResult& step) {
  ++settled.steps;
  settled.seconds += step.seconds;
  settled.budget += step.budget;
}

}  // namespace

Course::Course(const TrainingParts& with, const TrainOptions& as, Progress& from,
               logging::Reporter& told, Control& asked)
    : parts(with),
      options(as),
      progress(from),
      reporter(told),
      control(asked),
      seconds_before_(from.seconds) {}

void Course::begin_epoch() {
  epoch_began_ = watch_.seconds() - progress.begun->seconds;
  makes_steps_ = true;
}

const Progress& Course::timed() {
  const double now = watch_.seconds();
  progress.seconds = seconds_before_ + now;
  if (progress.begun && makes_steps_) progress.begun->seconds = now - epoch_began_;
  return progress;
}

const Progress& Course::whole() {
  progress.plateau = parts.learning_rate.plateau();
  progress.last_rate = parts.optimizer.last_rate();
  progress.findings = parts.program.tuner().trying() ? "" : parts.program.tuner().findings();
  return timed();
}

Epoch::Epoch(Course& course)
    : course_(course),
      epoch_(course.progress.epochs + 1),
      plan_(course.parts.plan.in_epoch(course.progress.epochs)),
      stolen_(course.options.cpus) {
  assert(plan_.steps() > 0);
  Progress& progress = course_.progress;
  const TrainOptions& options = course_.options;
  const bool is_new = !progress.begun;
  if (is_new) progress.begun.emplace();
  course_.reporter.begin_epoch({epoch_,
                                options.steps ? std::nullopt : std::optional(options.epochs),
                                plan_.steps(), begun().steps});
  if (begun().steps < plan_.steps()) course_.parts.batches.seek(epoch_ - 1, begun().steps);
  // What goes on computes as it did before it was stopped, or tries as at a start.
  if (is_new && tries_again(epoch_)) course_.parts.program.tuner().try_again();
  course_.begin_epoch();
}

EpochEnd Epoch::run() {
  while (begun().steps < plan_.steps()) {
    if (steps_are_made(course_.options, course_.progress)) return EpochEnd::enough;
    StepResult step = make_step();
    if (!step.lost_input.empty()) {
      lost_input_ = step.lost_input;
      if (untold_) tell(add_up(course_.parts.communicator, untold_->tally));
      return EpochEnd::lost_input;
    }
    if (untold_) tell(step.before);
    if (step.skipped && !left_out_ && course_.options.on_nan == NanPolicy::rollback) {
      undo_count();
      return EpochEnd::rolled_back;
    }
    account(step);
    check();
    if (step.stop) return EpochEnd::stopped;
    // The epoch's own mark would follow at once.
    owes_checkpoint_ = step.checkpoint && begun().steps == plan_.steps();
    if (step.checkpoint && !owes_checkpoint_) course_.control.take_checkpoint(course_.whole());
  }
  return EpochEnd::whole;
}

StepResult Epoch::make_step() {
  const TrainingParts& parts = course_.parts;
  Progress& progress = course_.progress;
  begun().learning_rate =
      parts.learning_rate.at({epoch_ - 1, begun().steps, plan_.steps(), progress.steps});
  left_out_ = std::ranges::find(progress.left_out, progress.steps + 1) != progress.left_out.end();
  const auto wishes = [&] {
    ++progress.steps;
    ++begun().steps;
    return StepWishes{
        course_.control.stop_requested(),
        parts.communicator.rank() == 0 && course_.control.checkpoint_due(course_.timed())};
  };
  stopped_before_ = seconds_stopped();
  return run_step(parts,
                  {plan_, begun().steps, progress.steps, course_.options.seed,
                   begun().learning_rate, course_.options.on_nan, left_out_},
                  untold_ ? untold_->tally : StepTally{}, wishes);
}

double Epoch::seconds_stopped() const {
  const auto& told = course_.options.stopped_seconds;
  return told ? told() : 0;
}

void Epoch::undo_count() {
  --course_.progress.steps;
  --begun().steps;
}

/// Returns whether it is settled.
bool Epoch::count(const StepResult& step) {
  Progress& progress = course_.progress;
  const bool cold = std::exchange(course_.cold, false);
  if (step.skipped) {
    ++begun().skipped;
    if (!left_out_) ++course_.skipped_in_a_row;
    return false;
  }
  course_.skipped_in_a_row = 0;
  progress.own_images += step.own_images;
  if (step.trying) return false;
  const bool whole = plan_.images(begun().steps - 1) == plan_.images(0);
  if (whole && progress.steps > 1) ++progress.settled_steps;
  return begun().steps > 1 && !cold;
}

void Epoch::account(StepResult& step) {
  const bool settled = count(step);
  // Its sums cannot come with the next step where there is none, or where something needs them
  // before it. Settled steps are measured without what a device has left of others.
  const bool awaited = !settled || step.stop || step.checkpoint || begun().steps == plan_.steps() ||
                       compares_replicas() || steps_are_made(course_.options, course_.progress);
  std::optional<compute::Tally> sums;
  if (awaited) sums = finish_step(course_.parts.communicator, step);
  begun().budget += step.budget;
  if (settled) settle(begun().settled, step);
  // A rank that is stopped while it waits keeps the others waiting: it was not there.
  waited_ += std::max(0.0, step.waited - (seconds_stopped() - stopped_before_));
  untold_ = {{.step = course_.progress.steps,
              .epoch = epoch_,
              .step_in_epoch = begun().steps,
              .learning_rate = begun().learning_rate,
              .seconds = step.seconds,
              .trying = step.trying,
              .skipped = step.skipped},
             step.tally};
  if (sums) tell(*sums);
}

/// The sums of the step that was not told have come.
void Epoch::tell(const compute::Tally& sums) {
  logging::StepRecord record = std::exchange(untold_, std::nullopt)->record;
  record.tally = sums;
  if (record.skipped) {
    record.tally.loss = std::numeric_limits<double>::quiet_NaN();
  } else {
    begun().train += sums;
  }
  record.epoch_tally = begun().train;
  course_.reporter.step(record);
  if (!record.skipped) check_loss(record);
}

void Epoch::check() {
  const TrainOptions& options = course_.options;
  const std::uint64_t steps = course_.progress.steps;
  if (course_.skipped_in_a_row >= kMostSkipped) {
    fail(
        ExitCode::failed,
        fmt::format("Step {}: the gradients of {} steps in a row were NaN or infinite, terminating "
                    "training (all were skipped, so the weights that make them stay); try a "
                    "smaller --lr, --clip-norm, or --on-nan rollback",
                    steps, kMostSkipped));
  }
  if (!compares_replicas()) return;
  const compute::Arenas arenas = course_.parts.exchange.arenas();
  check_replicas(course_.parts.communicator, course_.parts.backend.memory(),
                 arenas.weights.slice(0, arenas.gradients.size), steps, options.hosts);
}

bool Epoch::compares_replicas() const {
  const std::uint64_t every = course_.options.check_replicas;
  return every != 0 && course_.progress.steps % every == 0;
}

logging::EpochRecord Epoch::close() {
  const TrainingParts& parts = course_.parts;
  Progress& progress = course_.progress;
  average_statistics(
      {parts.program.layout(), parts.exchange.arenas().weights, parts.backend.memory()},
      std::exchange(progress.own_images, 0.0), parts.communicator, parts.weights_mutex);
  course_.timed();
  course_.end_steps();
  const BegunEpoch& made = begun();
  logging::EpochRecord record{.epoch = epoch_,
                              .steps = made.steps,
                              .train = made.train,
                              .learning_rate = made.learning_rate,
                              .seconds = made.seconds,
                              .budget = made.budget,
                              .settled = made.settled,
                              .skipped = made.skipped,
                              .kernels = parts.program.tuner().findings()};
  // A sum of nothing is no loss of nothing.
  if (made.skipped > 0 && made.train.images == 0) {
    record.train.loss = std::numeric_limits<double>::quiet_NaN();
  }
  const auto lost = stolen_.part_since_last(), waited = wait_.part_since_last();
  record.budget.other = record.seconds - record.budget.known();
  record.straggler = find_straggler(parts.communicator, waited_, course_.options.hosts);
  average_over_ranks(parts.communicator, record.budget, record.seconds);
  average_over_ranks(parts.communicator, record.settled.budget, record.settled.seconds);
  record.stolen = comm::largest_of_ranks(parts.communicator, lost);
  record.cpu_wait = comm::largest_of_ranks(parts.communicator, waited);
  return record;
}

void Epoch::end(const logging::EpochRecord& record) {
  Progress& progress = course_.progress;
  progress.training_seconds += record.seconds;
  progress.images += static_cast<std::uint64_t>(begun().train.images);
  progress.begun.reset();
  progress.epochs = epoch_;
}

}  // namespace cputrain::loop
