#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "loop/control.h"
#include "loop/parts.h"
#include "loop/reporter.h"
#include "loop/training_end.h"

namespace cputrain::loop {

struct LoopOptions : TrainingEnd {
  std::uint64_t seed = 0;
  std::vector<std::string> hosts{};  ///< by rank: names a straggler
  std::vector<int> cpus{};  ///< that this rank may compute on, to ask what was stolen; empty: all
  /// How long this process did not run so far (system/lost_time/stopped_time.h); empty: unknown.
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
