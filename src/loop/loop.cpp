// The loop of a training: steps with their lines and checkpoints, and after each epoch validation.
#include "loop/loop.h"

#include <utility>

#include "loop/loop_details.h"
#include "loop/replicas.h"

namespace cputrain::loop {

TrainResult Loop::run() {
  while (!is_over()) {
    begin_epoch();
    bool checkpoint_owed = false;  // after the last step: the epoch's end is the better place

    while (has_steps()) {
      // Forward and backward, the sum of gradients over ranks, the update.
      StepResult step = run_step(parts_, observer_, next_step());
      if (!step.lost_input.empty()) {  // it was not made
        if (late_) log_late(add_up(parts_.communicator, late_tally_));
        result_.stopped = true;
        result_.lost_input = step.lost_input;
        break;
      }
      ++progress_.steps;
      ++begun().steps;

      // A device has this step to compute while ranks add up the sums of the step before.
      step.stop = control_.stop_requested();
      step.checkpoint = parts_.leads() && control_.checkpoint_due(timed());
      const compute::Tally before = agree(parts_, observer_, late_tally_, step);
      if (late_) log_late(before);
      if (step.skipped && !left_out_ && options_.on_nan == NanPolicy::rollback) {
        result_.roll_back = progress_.steps;
        --progress_.steps;
        --begun().steps;
        return result();
      }

      // Log it with the next step, or at once where something needs its sums.
      const bool settled = count(step);
      std::optional<compute::Tally> sums;
      if (!settled || needs_sums(step)) sums = finish_step(parts_.communicator, step);
      measure(step, settled);
      if (sums) log_late(*sums);
      check_skipped();
      if (compares_replicas()) check_replicas(parts_, progress_.steps, options_.hosts);

      if (step.stop) {
        result_.stopped = true;
        break;
      }
      checkpoint_owed = step.checkpoint && begun().steps == plan_->steps();
      if (step.checkpoint && !checkpoint_owed) control_.take_checkpoint(whole());
    }

    // What the first epoch did not ask for may be damaged, too.
    if (progress_.epochs == 0 && !result_.stopped) read_rest();

    const bool is_whole = begun().steps >= plan_->steps();
    if (result_.stopped) {
      if (begun().steps == 0) progress_.begun.reset();  // nothing is logged of such an epoch
      control_.stopping(whole());
      if (!progress_.begun) break;
    } else if (!is_whole) {
      finished();  // --steps ends it within an epoch
    }
    EpochRecord record = end_steps();

    // Validate. A stop in the middle leaves all of it to the run that goes on.
    bool stops = false;
    if (validation_ && !result_.stopped && is_validated(record.epoch)) {
      if (validate(record)) {
        stops = stop_requested();
      } else {
        result_.stopped = true;
        result_.lost_input = lost_input(validation_->batches, parts_.communicator);
        control_.stopping(whole());
      }
    }
    progress_.training_seconds += record.seconds;
    progress_.images += static_cast<std::uint64_t>(record.train.images);
    progress_.epochs = record.epoch;
    progress_.begun.reset();
    end_epoch(record);

    if (stops) {
      result_.stopped = true;
      if (!told_end_) control_.stopping(whole());
    } else if (is_whole && !result_.stopped && checkpoint_due(checkpoint_owed)) {
      control_.take_checkpoint(whole());
    }
  }
  if (!result_.stopped) finished();
  return result();
}

/// Whether the step is settled: it shows the speed of a long training.
bool Loop::count(const StepResult& step) {
  const bool cold = std::exchange(cold_, false);
  if (step.skipped) {
    ++begun().skipped;
    ++progress_.skipped;
    if (!left_out_) ++skipped_in_a_row_;
    return false;
  }
  skipped_in_a_row_ = 0;
  progress_.own_images += step.own_images;
  if (step.trying || step.filling) return false;
  const bool has_all_images = plan_->images(begun().steps - 1) == plan_->images(0);
  if (has_all_images && progress_.steps > 1) ++progress_.settled_steps;
  return begun().steps > 1 && !cold;
}

}  // namespace cputrain::loop
