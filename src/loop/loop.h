#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "loop/parts.h"
#include "loop/progress.h"
#include "loop/records.h"

namespace cputrain::loop {

/// What a training asks its caller between its steps. All ranks make the same calls at the
/// same steps.
class Control {
 public:
  /// One that takes no checkpoints; `stop` is asked by stop_requested(), empty: nobody stops it.
  explicit Control(std::function<bool()> stop = {}) : stop_(std::move(stop)) {}
  virtual ~Control() = default;
  /// Whether this rank was asked to stop: one that was stops all, after the same step.
  virtual bool stop_requested() { return stop_ && stop_(); }
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

 private:
  std::function<bool()> stop_;
};

struct LoopOptions : TrainingEnd {
  std::uint64_t seed = 0;
  std::vector<std::string> hosts{};  ///< by rank: names a straggler
  std::vector<int> cpus{};  ///< that this rank may compute on, to ask what was stolen; empty: all
  /// How long this process did not run so far (system/signals.h); empty: unknown.
  std::function<double()> stopped_seconds{};
  NanPolicy on_nan = NanPolicy::abort;
  std::uint64_t check_replicas = 0;  ///< every so many steps
  bool tracks_best = false;          ///< reports best weights to Control; implied by `patience`
  int eval_every = 1;                ///< epochs; and after the last one
};

/// Steps in a row whose gradients are NaN or infinite: after so many, skipping has not helped.
inline constexpr int kMostSkipped = 10;

/// What is evaluated after every epoch; nothing with --limit-val 0.
struct Validation {
  data::BatchSource& batches;
  const data::BatchPlan& plan;
};

/// Whether the program tries its algorithms again at the start of this epoch, which counts from 1:
/// in epochs 2, 3, 5, 9, 17, ... What is quickest depends on how many zeros there are, which
/// changes ever less, and where an epoch has few steps, trying in each would be much of it.
bool tries_again(int epoch);

/// Synchronous SGD over epochs, from `start` on, where the parts are as they were then: a training
/// may be in the middle of an epoch, or have made all of its steps. `control` is asked once a step
/// whether to stop; all ranks then stop after the same step. Where gradients are NaN or infinite
/// and the policy is to roll back, it returns at once, with the parts as they were before that
/// step; steps that `start` leaves out change nothing when they come. Error(failed) when the loss
/// of a step or of a validation is not finite, or kMostSkipped steps in a row were skipped; the
/// reporter has heard of that step or epoch then, and of none behind it. The reporter hears of a
/// step when the next one is made, unless something needs its sums before, so a step may be made
/// behind one whose loss is NaN; no checkpoint is. Error(disagree) where replicas differ.
TrainResult train(Parts&, const std::optional<Validation>&, const LoopOptions&,
                  const Progress& start, Reporter&, Control&);

/// Collective: Error(failed) on all ranks where some weights of one are not finite. A network can
/// hide them from its loss, and the last step's loss is from before its update.
void check_weights(comm::Communicator&, compute::Memory&, const Array& weights);

}  // namespace cputrain::loop
