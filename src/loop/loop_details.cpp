#include "loop/loop_details.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "loop/evaluate.h"
#include "loop/parts.h"
#include "loop/replicas.h"

namespace cputrain::loop {
namespace {

void check_loss(const StepRecord& record) {
  if (record.skipped || record.tally.is_number()) return;
  fail(ExitCode::failed,
       "Batch {}: Invalid loss, terminating training (it is NaN or infinite in epoch {}); try a "
       "smaller --lr",
       record.step_in_epoch - 1, record.epoch);
}

/// Ranks see one tally, so they all end here or none does.
void check_validation(const EpochRecord& record) {
  if (!record.validation || record.validation->is_number()) return;
  fail(ExitCode::failed,
       "Epoch {}: Invalid validation loss, terminating training (it is NaN or infinite, so its "
       "predictions mean nothing); try a smaller --lr",
       record.epoch);
}

std::optional<TimeToAccuracy> reached(const EpochRecord& record, std::optional<double> target,
                                      double training_seconds) {
  if (!record.validation || !target) return {};
  const std::optional<double> accuracy = record.validation->accuracy();
  if (!accuracy || *accuracy < *target) return {};
  return TimeToAccuracy{*target, *accuracy, record.epoch, training_seconds};
}

/// The same on all ranks, which see one tally.
optim::Score score_of(const compute::Tally& validation, optim::Monitor monitor) {
  return {validation.mean_loss(),
          validation.accuracy().value_or(std::numeric_limits<double>::quiet_NaN()), monitor};
}

/// Keras' ModelCheckpoint(save_best_only), with val_loss or val_accuracy. Accuracies are often
/// equal: then the lower loss wins.
bool is_best(const optim::Score& score, int epoch, BestEpoch& best) {
  const auto accuracy = optim::followed_accuracy(score);
  const bool wins_tie = accuracy && accuracy == best.accuracy && score.loss < best.loss;
  if (!wins_tie && !optim::is_better(score, best.loss, best.accuracy, 0)) return false;
  best = {score.loss, epoch, accuracy};
  return true;
}

/// Keras' EarlyStopping, with val_loss or val_accuracy.
void wait_for_better(const optim::Score& score, double min_delta, Patience& patience) {
  if (optim::is_better(score, patience.loss, patience.accuracy, min_delta)) {
    patience = {score.loss, 0, optim::followed_accuracy(score)};
  } else {
    ++patience.waited;
  }
}

}  // namespace

Loop::Loop(Parts& parts, const std::optional<Validation>& validation, const LoopOptions& options,
           const Progress& start, Reporter& reporter, Control& control)
    : parts_(parts),
      validation_(validation),
      options_(options),
      progress_(start),
      reporter_(reporter),
      control_(control),
      observer_(parts),
      seconds_before_(start.seconds) {
  if (!target_is_reached(options, progress_)) progress_.reached.reset();  // it was raised since
}

bool Loop::is_over() const {
  if (result_.stopped) return true;
  if (progress_.begun) return false;  // it is ended at least
  return loop::is_over(options_, progress_);
}

/// The epoch that the progress has begun goes on now, or the next one begins.
void Loop::begin_epoch() {
  const int epoch = progress_.epochs + 1;
  plan_ = parts_.plan.in_epoch(progress_.epochs);
  assert(plan_->steps() > 0);
  meter_.emplace(options_, parts_.simulated);
  const bool is_new = !progress_.begun;
  if (is_new) progress_.begun.emplace();
  reporter_.begin_epoch({epoch, options_.steps ? std::nullopt : std::optional(options_.epochs),
                         plan_->steps(), begun().steps});
  if (begun().steps < plan_->steps()) parts_.batches->seek(epoch - 1, begun().steps);
  // What goes on computes as it did before it was stopped, or tries as at a start.
  if (is_new && tries_again(epoch)) parts_.program.tuner().try_again();
  epoch_began_ = watch_.seconds() - begun().seconds;
  makes_steps_ = true;
}

bool Loop::has_steps() const {
  return progress_.begun->steps < plan_->steps() && !steps_are_made(options_, progress_);
}

StepToDo Loop::next_step() {
  begun().learning_rate =
      parts_.learning_rate.at({progress_.epochs, begun().steps, plan_->steps(), progress_.steps});
  left_out_ =
      std::ranges::find(progress_.left_out, progress_.steps + 1) != progress_.left_out.end();
  meter_->begin_step();
  features_before_ = parts_.program.images_from_features();
  return {.plan = *plan_,
          .in_epoch = begun().steps,
          .step = progress_.steps,
          .updates = progress_.steps - progress_.skipped,
          .seed = options_.seed,
          .learning_rate = begun().learning_rate,
          .on_nan = options_.on_nan,
          .left_out = left_out_};
}

/// Sums cannot come with the next step where there is none, or where something needs them before
/// it.
bool Loop::needs_sums(const StepResult& step) const {
  return step.stop || step.checkpoint || compares_replicas() || !has_steps();
}

void Loop::measure(const StepResult& step, bool settled) {
  begun().budget += step.budget;
  begun().from_features +=
      static_cast<double>(parts_.program.images_from_features() - features_before_);
  if (settled) {
    SettledSteps& sums = begun().settled;
    ++sums.steps;
    sums.seconds += step.seconds;
    sums.budget += step.budget;
  }
  meter_->end_step(step.waited);
  late_ = {.step = progress_.steps,
           .epoch = progress_.epochs + 1,
           .step_in_epoch = begun().steps,
           .learning_rate = begun().learning_rate,
           .seconds = step.seconds,
           .trying = step.trying,
           .skipped = step.skipped,
           .ends_epoch = begun().steps == plan_->steps()};
  late_tally_ = step.tally;
}

/// The sums of the step that was not logged have come.
void Loop::log_late(const compute::Tally& sums) {
  StepRecord record = *std::exchange(late_, std::nullopt);
  late_tally_ = {};
  record.tally = sums;
  if (record.skipped) {
    record.tally.loss = std::numeric_limits<double>::quiet_NaN();
  } else {
    begun().train += sums;
  }
  record.epoch_tally = begun().train;
  reporter_.step(record);
  check_loss(record);
}

void Loop::read_rest() {
  data::BatchSource& batches = *parts_.batches;
  if (!batches.filling()) return;
  observer_.part("decode the rest");
  batches.read_rest();
  result_.lost_input = lost_input(batches, parts_.communicator);
  result_.stopped = !result_.lost_input.empty();
}

void Loop::check_skipped() const {
  if (skipped_in_a_row_ < kMostSkipped) return;
  fail(ExitCode::failed,
       "Step {}: the gradients of {} steps in a row were NaN or infinite, terminating training "
       "(all were skipped, so the weights that make them stay); try a smaller --lr, --clip-norm, "
       "or --on-nan rollback",
       progress_.steps, kMostSkipped);
}

bool Loop::compares_replicas() const {
  const std::uint64_t every = options_.check_replicas;
  return every != 0 && progress_.steps % every == 0;
}

EpochRecord Loop::end_steps() {
  const std::size_t updates = begun().steps - begun().skipped;
  const bool moved = average_statistics(
      {parts_.program.layout(), parts_.exchange.arenas().weights, parts_.memory()},
      std::exchange(progress_.own_images, 0.0), parts_.communicator, parts_.weights_mutex);
  // Not once more where a run goes on behind its last step, before validation.
  if (moved) {
    const std::lock_guard lock(parts_.weights_mutex);  // SIGTERM may save averages now
    parts_.optimizer.average_statistics(updates);
  }
  timed();
  makes_steps_ = false;
  EpochRecord record{begun()};
  record.epoch = progress_.epochs + 1;
  record.kernels = parts_.program.tuner().tuned_methods();
  // The mean loss of no images is not 0.
  if (record.skipped > 0 && record.train.images == 0) {
    record.train.loss = std::numeric_limits<double>::quiet_NaN();
  }
  meter_->finish(record, parts_.communicator);
  return record;
}

bool Loop::validate(EpochRecord& record) {
  const system::Stopwatch watch;
  parts_.communicator.pulse().at(comm::Phase::validate, progress_.steps);
  if (parts_.fault_point) {
    parts_.fault_point({.phase = comm::Phase::validate,
                        .rank = parts_.communicator.rank(),
                        .step = progress_.steps});
  }
  record.validation = evaluate_weights();
  if (!record.validation) return false;
  if (parts_.optimizer.averages()) {
    with_averages(parts_, [&] { record.averaged = evaluate_weights(); });
    if (!record.averaged) {  // stopped: the epoch is validated again by who goes on
      record.validation.reset();
      return false;
    }
  }
  record.validation_seconds = watch.seconds();
  return true;
}

/// Where --steps ends the training, no number of epochs does.
bool Loop::is_validated(int epoch) const {
  const bool is_last =
      options_.steps ? steps_are_made(options_, progress_) : epoch >= options_.epochs;
  return is_last || epoch % options_.eval_every == 0;
}

/// Evaluates the weights in the arena, over all ranks; nothing where that was not finished.
std::optional<compute::Tally> Loop::evaluate_weights() {
  const std::size_t all = validation_->plan.samples();
  std::size_t done = 0;  // by all ranks, if they are as quick as this one
  std::optional<compute::Tally> tally =
      evaluate_while({.goes_on = [this] { return !stop_requested(); },
                      .progress =
                          [&](int images) {
                            done += static_cast<std::size_t>(images * parts_.communicator.size());
                            reporter_.validating(std::min(done, all), all);
                          }},
                     parts_.program, validation_->batches, validation_->plan, parts_.communicator);
  if (tally) {
    add_loss_of_weights(*tally, parts_.backend, parts_.program.layout(),
                        parts_.exchange.arenas().weights, parts_.communicator);
  }
  return tally;
}

/// What follows from its validation, and its line.
void Loop::end_epoch(const EpochRecord& record) {
  const double rate = next_rate();
  if (record.validation) {
    parts_.learning_rate.epoch_ended(score_of(*record.validation, options_.monitor));
  }
  progress_.reached = reached(record, options_.target_accuracy, progress_.training_seconds);
  reporter_.epoch(record);
  result_.last = record;
  check_validation(record);
  if (record.validation) keep_best(record);
  if (next_rate() != rate && !is_over()) {
    reporter_.rate_changed(progress_.epochs + 1, next_rate());
  }
}

/// The rate of the next epoch's first step, as a plateau has it by now.
double Loop::next_rate() const {
  return parts_.learning_rate.at({progress_.epochs, 0, plan_->steps(), progress_.steps});
}

void Loop::keep_best(const EpochRecord& record) {
  const optim::Score score = score_of(*record.validation, options_.monitor);
  wait_for_better(score, options_.min_delta, progress_.patience);
  if (is_best(score, record.epoch, progress_.best) && (options_.tracks_best || options_.patience)) {
    control_.best_weights(whole());
  }
}

TrainResult Loop::result() {
  result_.progress = whole();
  result_.early_stopped = waited_enough(options_, progress_);
  return std::move(result_);
}

const Progress& Loop::timed() {
  const double now = watch_.seconds();
  progress_.seconds = seconds_before_ + now;
  if (progress_.begun && makes_steps_) begun().seconds = now - epoch_began_;
  return progress_;
}

const Progress& Loop::whole() {
  progress_.plateau = parts_.learning_rate.plateau();
  progress_.last_rate = parts_.optimizer.last_rate();
  progress_.tuned_methods =
      parts_.program.tuner().trying() ? "" : parts_.program.tuner().tuned_methods();
  return timed();
}

bool Loop::any_rank(bool mine) const {
  double count = mine ? 1 : 0;
  parts_.communicator.sum(Array::of<double>({&count, 1}));
  return count > 0;
}

/// At the end of an epoch; rank 0's word. `owed`: one was due after its last step.
bool Loop::checkpoint_due(bool owed) {
  if (!parts_.leads()) return any_rank(false);
  return any_rank(owed ? control_.can_take(timed()) : control_.checkpoint_due(timed()));
}

void Loop::finished() {
  if (!std::exchange(told_end_, true)) control_.finished(whole());
}

void check_weights(comm::Communicator& communicator, compute::Memory& memory,
                   const Array& weights) {
  if (all_numbers(memory, weights, communicator)) return;
  fail(ExitCode::failed,
       "Invalid weights, terminating training (some are NaN or infinite after the last step, so "
       "their predictions mean nothing); try a smaller --lr");
}

bool tries_again(int epoch) {
  return epoch > 1 && std::has_single_bit(static_cast<unsigned>(epoch - 1));
}

TrainResult train(Parts& parts, const std::optional<Validation>& validation,
                  const LoopOptions& options, const Progress& start, Reporter& reporter,
                  Control& control) {
  return Loop(parts, validation, options, start, reporter, control).run();
}

}  // namespace cputrain::loop
