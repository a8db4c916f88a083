#include "loop/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "core/error.h"
#include "loop/epoch.h"
#include "loop/faults.h"
#include "loop/safety/lost_input.h"
#include "loop/safety/numbers.h"
#include "loop/training_end.h"
#include "system/clock.h"

namespace cputrain::loop {
namespace {

bool any_rank(comm::Communicator& communicator, bool mine) {
  double count = mine ? 1 : 0;
  communicator.sum(Array::of<double>({&count, 1}));
  return count > 0;
}

/// Ranks see one tally, so they all end here or none does.
void check_validation(const logging::EpochRecord& record) {
  if (!record.validation || record.validation->is_number()) return;
  fail(ExitCode::failed,
       fmt::format(
           "Epoch {}: Invalid validation loss, terminating training (it is NaN or infinite, so "
           "what the weights answer means nothing); try a smaller --lr",
           record.epoch));
}

/// False where it was not finished: some rank was asked to stop, or its images were lost.
bool validate(const Validation& validation, logging::EpochRecord& record, Course& course) {
  const TrainingParts& parts = course.parts;
  const system::Stopwatch watch;
  parts.communicator.pulse().at(comm::Phase::validate, course.progress.steps);
  fault_point({.phase = comm::Phase::validate,
               .rank = parts.communicator.rank(),
               .step = course.progress.steps});
  std::size_t done = 0;  // by all ranks, if they are as quick as this one
  const auto tell_progress = [&](int images) {
    done += static_cast<std::size_t>(images * parts.communicator.size());
    course.reporter.validating(std::min(done, validation.plan.samples()),
                               validation.plan.samples());
  };
  const auto goes_on = [&] {
    return !any_rank(parts.communicator, course.control.stop_requested());
  };
  std::optional<compute::Tally> tally =
      evaluate_while(goes_on, parts.program, validation.batches, validation.plan,
                     parts.communicator, tell_progress);
  if (!tally) return false;
  add_loss_of_weights(*tally, parts.backend, parts.program.layout(),
                      parts.exchange.arenas().weights, parts.communicator);
  record.validation = tally;
  record.validation_seconds = watch.seconds();
  return true;
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

/// Keras' ModelCheckpoint(save_best_only), monitoring val_loss.
bool is_best(double loss, int epoch, BestEpoch& best) {
  if (!(loss < best.loss)) return false;
  best = {loss, epoch};
  return true;
}

/// Keras' EarlyStopping, monitoring val_loss.
void wait_for_less(double loss, double min_delta, Patience& patience) {
  if (loss < patience.loss - min_delta) {
    patience = {loss, 0};
  } else {
    ++patience.waited;
  }
}

/// Epoch after epoch.
class Trainer {
 public:
  Trainer(Course& course, const std::optional<Validation>& validation)
      : course_(course), validation_(validation) {}

  void run() {
    while (!ends()) {
      Epoch epoch(course_);
      const EpochEnd end = epoch.run();
      if (end == EpochEnd::rolled_back) {
        result_.roll_back = course_.progress.steps + 1;
        return;
      }
      result_.stopped = end == EpochEnd::stopped || end == EpochEnd::lost_input;
      result_.lost_input = epoch.lost_input();
      if (end == EpochEnd::lost_input && course_.progress.begun->steps == 0) return leave_unbegun();
      if (result_.stopped) course_.control.stopping(course_.whole());
      if (end == EpochEnd::enough) tell_end();
      logging::EpochRecord record = epoch.close();
      finish(epoch, record);
      if (end == EpochEnd::whole && !result_.stopped) take_checkpoint(epoch.owes_checkpoint());
    }
    if (!result_.stopped) tell_end();
  }

  TrainResult result() {
    const Progress& progress = course_.timed();
    result_.steps = progress.steps;
    result_.settled_steps = progress.settled_steps;
    result_.epochs = progress.epochs;
    result_.seconds = progress.seconds;
    result_.training_seconds = progress.training_seconds;
    result_.reached = progress.reached;
    result_.best = progress.best;
    result_.early_stopped = waited_enough(course_.options, progress);
    return std::move(result_);
  }

 private:
  bool ends() const {
    if (result_.stopped) return true;
    if (course_.progress.begun) return false;  // it is closed at least
    return is_over(course_.options, course_.progress);
  }

  /// Nothing is told of an epoch without a step.
  void leave_unbegun() {
    course_.progress.begun.reset();
    course_.control.stopping(course_.whole());
  }

  /// What follows the steps of an epoch. A stop within validation leaves all of it to whoever goes
  /// on.
  void finish(Epoch& epoch, logging::EpochRecord& record) {
    const TrainingParts& parts = course_.parts;
    Progress& progress = course_.progress;
    const TrainOptions& options = course_.options;
    bool stops = false;
    if (validation_ && !result_.stopped) {
      if (validate(*validation_, record, course_)) {
        stops = any_rank(parts.communicator, course_.control.stop_requested());
      } else {
        result_.stopped = true;
        result_.lost_input = lost_input(validation_->batches, parts.communicator);
        course_.control.stopping(course_.whole());
      }
    }
    epoch.end(record);
    if (record.validation) parts.learning_rate.epoch_ended(record.validation->mean_loss());
    progress.reached = reached(record, options, progress.training_seconds);
    course_.reporter.epoch(record);
    result_.last = record;
    check_validation(record);
    if (record.validation) compare_with_best(record.validation->mean_loss(), record.epoch);
    if (!stops) return;
    result_.stopped = true;
    if (!told_end_) course_.control.stopping(course_.whole());
  }

  void compare_with_best(double loss, int epoch) {
    Progress& progress = course_.progress;
    const TrainOptions& options = course_.options;
    wait_for_less(loss, options.min_delta, progress.patience);
    if (is_best(loss, epoch, progress.best) && (options.tracks_best || options.patience)) {
      course_.control.best_weights(course_.whole());
    }
  }

  void tell_end() {
    if (!std::exchange(told_end_, true)) course_.control.finished(course_.whole());
  }

  void take_checkpoint(bool owed) {
    const bool leads = course_.parts.communicator.rank() == 0;
    Control& control = course_.control;
    const bool due = leads && (owed ? control.can_take(course_.timed())
                                    : control.checkpoint_due(course_.timed()));
    if (any_rank(course_.parts.communicator, due)) course_.control.take_checkpoint(course_.whole());
  }

  Course& course_;
  const std::optional<Validation>& validation_;
  TrainResult result_;
  bool told_end_ = false;
};

}  // namespace

void check_weights(comm::Communicator& communicator, compute::Memory& memory,
                   const Array& weights) {
  if (all_numbers(memory, weights, communicator)) return;
  fail(ExitCode::failed,
       "Invalid weights, terminating training (some are NaN or infinite after the last step, so "
       "their "
       "answers mean nothing); try a smaller --lr");
}

bool tries_again(int epoch) {
  return epoch > 1 && std::has_single_bit(static_cast<unsigned>(epoch - 1));
}

TrainResult train(const TrainingParts& parts, const std::optional<Validation>& validation,
                  const TrainOptions& options, const Progress& start, logging::Reporter& reporter,
                  Control& control) {
  Progress progress = start;
  if (!target_is_reached(options, progress)) progress.reached.reset();  // it was raised since
  Course course(parts, options, progress, reporter, control);
  Trainer trainer(course, validation);
  trainer.run();
  return trainer.result();
}

}  // namespace cputrain::loop
