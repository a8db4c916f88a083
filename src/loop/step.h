#pragma once

#include <string>

#include "compute/backend.h"
#include "core/budget.h"
#include "loop/observer.h"
#include "loop/parts.h"
#include "system/clock.h"

namespace cputrain::loop {

/// What this rank's images of a step gave. A device may still be at it.
struct StepTally {
  compute::Pending<compute::Tally> images{};
  compute::Pending<double> penalty{};  ///< L2, of the mean loss
};

/// The sums of a step over all ranks, which it waits for; the loss has the L2 penalty in it.
/// Collective.
compute::Tally add_up(comm::Communicator&, const StepTally&);

struct StepResult {
  system::Stopwatch since_begin{};
  StepTally tally{};      ///< this rank's
  Budget budget{};        ///< this rank's; adds up to `seconds`
  double seconds = 0;     ///< the host's, which may be ahead of a device
  double own_images = 0;  ///< this rank's
  double waited = 0;      ///< seconds in which this rank had nothing to do but wait for others
  /// It has changed nothing, neither weights nor optimizer state nor statistics: it was left out,
  /// or its gradients, summed over ranks, are NaN or infinite and the policy is not to abort. The
  /// same on all ranks.
  bool skipped = false;
  /// Why its images were not the data's; empty where they were. Then it was given up before its
  /// gradients, and has changed nothing. The same on all ranks.
  std::string lost_input{};
  bool filling = false;  ///< images were still being decoded; the same on all ranks
  // What agree() makes the same on all ranks.
  bool trying = false;      ///< rank 0's program tried algorithms in it
  bool stop = false;        ///< some rank asked to stop after this step
  bool checkpoint = false;  ///< rank 0 asked for one after this step
};

/// One synchronous step of the whole training: forward and backward by micro-batch, one reduction,
/// one update. agree() ends it, unless its input was lost.
StepResult run_step(Parts&, Observer&, const StepToDo&);

/// What a rank wants to happen after a step.
struct StepWishes {
  bool stop = false;        ///< any rank's: all stop
  bool checkpoint = false;  ///< rank 0's alone
};

/// Ends a step: adds up what all ranks must know of it. Algorithms that rank 0's program has found
/// to be the quickest are then used by all. The sums of the step `before`, which are returned,
/// are added up with that: a device has this step to compute by then, so it never waits for the
/// host. Nothing where no step is before it, or its sums are known.
compute::Tally agree(const RankProgram&, Observer&, const StepWishes&, const StepTally& before,
                     StepResult&);

/// The sums of the step that was run last, by add_up(), where they cannot come with the next one.
/// The wait for them becomes part of the step.
compute::Tally finish_step(comm::Communicator&, StepResult&);

/// Sum over parameters that learn of l2 * sum of squares: what Keras adds to the mean loss that it
/// prints, in training (with the weights that the step began with) and in evaluation. It takes the
/// weights as they are when it is waited for.
compute::Pending<double> l2_penalty(compute::Backend&, const compute::ParameterLayout&,
                                    const Array& weights);

}  // namespace cputrain::loop
