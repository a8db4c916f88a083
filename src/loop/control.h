#pragma once

#include "loop/progress.h"

namespace cputrain::loop {

/// What a training asks its caller between its steps. All ranks make the same calls at the
/// same steps.
class Control {
 public:
  virtual ~Control() = default;
  /// Whether this rank was asked to stop: one that was stops all, after the same step.
  virtual bool stop_requested() = 0;
  /// Whether a checkpoint is to be taken now. Rank 0's word counts for all, and it alone is asked:
  /// after each step, also after an epoch's last one, where `progress` has its begun epoch still (a
  /// checkpoint is then taken when the epoch has ended, unless the training stops there), and else
  /// once more when the epoch has ended. Here `progress` has the counts and times of the step, but
  /// not yet what ranks add up of it and of the step before, nor the parts' own: rate, plateau,
  /// tuned methods.
  virtual bool checkpoint_due([[maybe_unused]] const Progress& progress) { return false; }
  /// Whether one that was due after an epoch's last step can be taken now that the epoch has ended;
  /// else it is due still. Of rank 0.
  virtual bool can_take([[maybe_unused]] const Progress& progress) { return true; }
  /// Takes one. Collective; the arrays stay as they are until it returns.
  virtual void take_checkpoint([[maybe_unused]] const Progress& progress) {}
  /// The training stops here, by request; after it no call comes. Where that is in the
  /// middle of an epoch, or after its last step, `progress` has the begun epoch. Collective.
  virtual void stopping([[maybe_unused]] const Progress& progress) {}
  /// The training has come to its end by itself: a longer one would go on from here. Once, before
  /// an epoch that --steps ends is closed, so that `progress` has it still. Collective.
  virtual void finished([[maybe_unused]] const Progress& progress) {}
  /// The weights are better than those of all epochs before, and statistics are averaged. The epoch
  /// has ended. Collective.
  virtual void best_weights([[maybe_unused]] const Progress& progress) {}
};

}  // namespace cputrain::loop
