#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "system/clock.h"
#include "system/cpu_wait.h"
#include "system/stolen_time.h"
#include "train/numbers.h"
#include "train/statistics.h"

namespace cputrain::train {
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

/// Who arrives last waits least: by the seconds that each rank waited for the others.
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

bool any_rank(comm::Communicator& communicator, bool mine) {
  double count = mine ? 1 : 0;
  communicator.sum(Array::of<double>({&count, 1}));
  return count > 0;
}

void check_loss(const logging::StepRecord& record) {
  if (record.tally.is_number()) return;
  fail(
      ExitCode::failed,
      fmt::format("Batch {}: Invalid loss, terminating training (it is no longer a number in epoch "
                  "{}); try a smaller --lr",
                  record.step_in_epoch - 1, record.epoch));
}

/// Ranks see one tally, so they all end here or none does.
void check_validation(const logging::EpochRecord& record) {
  if (!record.validation || record.validation->is_number()) return;
  fail(ExitCode::failed,
       fmt::format("Epoch {}: Invalid validation loss, terminating training (it is no number, so "
                   "what the weights answer means nothing); try a smaller --lr",
                   record.epoch));
}

/// One pass over the data, or less of it.
class Epoch {
 public:
  Epoch(const TrainingParts& parts, const TrainOptions& options, logging::Reporter& reporter)
      : parts_(parts), options_(options), reporter_(reporter) {}

  logging::EpochRecord run(TrainResult& result, const std::function<bool()>& stop_requested) {
    logging::EpochRecord record{.epoch = ++result.epochs};
    const data::BatchPlan plan = parts_.plan.in_epoch(record.epoch - 1);
    reporter_.begin_epoch({record.epoch,
                           options_.steps ? std::nullopt : std::optional(options_.epochs),
                           plan.steps()});
    parts_.batches.seek(record.epoch - 1, 0);
    if (tries_again(record.epoch)) parts_.program.try_again();
    system::StolenTime stolen(options_.cpus);
    system::CpuWait wait;
    const system::Stopwatch watch;
    assert(plan.steps() > 0);
    while (record.steps < plan.steps() && !done(result)) {
      record.learning_rate =
          parts_.learning_rate.at({record.epoch - 1, record.steps, plan.steps(), result.steps});
      const StepResult step =
          run_step(parts_, {plan, record.steps, result.steps, options_.seed, record.learning_rate},
                   stop_requested);
      ++record.steps;
      record.train += step.tally;
      record.budget += step.budget;
      if (record.steps > 1 && !step.trying) settle(record.settled, step);
      const bool whole = step.tally.images == static_cast<double>(plan.images(0));
      if (whole && result.steps > 0 && !step.trying) ++result.settled_steps;
      own_images_ += step.own_images;
      result.stopped = step.stop;
      report(record, step, ++result.steps);
    }
    average_statistics(
        {parts_.program.layout(), parts_.exchange.arenas().weights, parts_.backend.memory()},
        std::exchange(own_images_, 0.0), parts_.communicator, parts_.weights_mutex);
    record.seconds = watch.seconds();
    const auto lost = stolen.part_since_last(), waited = wait.part_since_last();
    record.budget.other = record.seconds - record.budget.known();
    record.straggler =
        find_straggler(parts_.communicator, record.budget.straggler_wait, options_.hosts);
    average_over_ranks(parts_.communicator, record.budget, record.seconds);
    average_over_ranks(parts_.communicator, record.settled.budget, record.settled.seconds);
    record.stolen = comm::largest_of_ranks(parts_.communicator, lost);
    record.cpu_wait = comm::largest_of_ranks(parts_.communicator, waited);
    result.training_seconds += record.seconds;
    return record;
  }

  bool done(const TrainResult& result) const {
    if (result.stopped || result.reached) return true;
    if (!options_.steps || result.steps < *options_.steps) return false;
    return result.settled_steps >= options_.settled_steps ||
           result.steps >= kMostWarmUp * *options_.steps;
  }

 private:
  /// All ranks see the same steps as settled.
  static void settle(logging::SettledSteps& settled, const StepResult& step) {
    ++settled.steps;
    settled.seconds += step.seconds;
    settled.budget += step.budget;
  }

  void report(const logging::EpochRecord& epoch, const StepResult& step, std::uint64_t steps) {
    const logging::StepRecord record{steps,       epoch.epoch,         epoch.steps,  step.tally,
                                     epoch.train, epoch.learning_rate, step.seconds, step.trying};
    reporter_.step(record);
    check_loss(record);
  }

  const TrainingParts& parts_;
  const TrainOptions& options_;
  logging::Reporter& reporter_;
  double own_images_ = 0;  ///< trained on since statistics were averaged
};

void validate(const TrainingParts& parts, const Validation& validation,
              logging::EpochRecord& record, logging::Reporter& reporter) {
  const system::Stopwatch watch;
  std::size_t done = 0;  // by all ranks, if they are as quick as this one
  const auto tell_progress = [&](std::span<const std::int32_t> labels, std::span<const float>) {
    done += labels.size() * static_cast<std::size_t>(parts.communicator.size());
    reporter.validating(std::min(done, validation.plan.samples()), validation.plan.samples());
  };
  compute::Tally tally = evaluate(parts.program, validation.batches, validation.plan,
                                  parts.communicator, tell_progress);
  add_loss_of_weights(tally, parts.backend, parts.program.layout(), parts.exchange.arenas().weights,
                      parts.communicator);
  record.validation = tally;
  record.validation_seconds = watch.seconds();
}

std::optional<logging::TimeToAccuracy> reached(const logging::EpochRecord& record,
                                               const TrainOptions& options,
                                               double training_seconds) {
  if (!record.validation || !options.target_accuracy) return {};
  const std::optional<double> accuracy = record.validation->accuracy();
  if (!accuracy || *accuracy < *options.target_accuracy) return {};
  return logging::TimeToAccuracy{*options.target_accuracy, *accuracy, record.epoch,
                                 training_seconds};
}

}  // namespace

void check_weights(comm::Communicator& communicator, compute::Memory& memory,
                   const Array& weights) {
  if (all_numbers(memory, weights, communicator)) return;
  fail(ExitCode::failed,
       "Invalid weights, terminating training (some are no numbers after the last step, so their "
       "answers mean nothing); try a smaller --lr");
}

bool tries_again(int epoch) {
  return epoch > 1 && std::has_single_bit(static_cast<unsigned>(epoch - 1));
}

TrainResult train(const TrainingParts& parts, const std::optional<Validation>& validation,
                  const TrainOptions& options, logging::Reporter& reporter,
                  const std::function<bool()>& stop_requested) {
  const system::Stopwatch whole;
  TrainResult result;
  Epoch epoch(parts, options, reporter);
  while (!epoch.done(result) && (options.steps || result.epochs < options.epochs)) {
    logging::EpochRecord record = epoch.run(result, stop_requested);
    if (validation && !result.stopped) {
      validate(parts, *validation, record, reporter);
      result.stopped = any_rank(parts.communicator, stop_requested());
    }
    parts.learning_rate.epoch_ended(
        (record.validation ? *record.validation : record.train).mean_loss());
    result.reached = reached(record, options, result.training_seconds);
    reporter.epoch(record);
    result.last = record;
    check_validation(record);
  }
  result.seconds = whole.seconds();
  return result;
}

}  // namespace cputrain::train
