#pragma once

#include <cstdint>
#include <string>

#include "comm/pulse.h"
#include "compute/backend.h"
#include "core/budget.h"
#include "loop/parts.h"
#include "system/clock.h"

namespace cputrain::loop {

/// Looks on while steps are made. The pulse shows the phase to the watch over this rank, a profiler
/// sees its name, tests break something there (FaultPoint), and the timeline keeps its time.
class Observer {
 public:
  /// Borrows them.
  explicit Observer(const Parts& parts) : parts_(parts) {}

  /// `step` counts from 1. What comes before its first phase is the penalty's.
  void begin_step(std::uint64_t step);
  /// A phase of the step begins; of several micro-batches, each has its own. `loss_scale`: of
  /// gradients that are still to be computed.
  void at(comm::Phase, double* loss_scale = nullptr);
  /// A part of the phase begins that the timeline shows by itself.
  void part(const char* name) { parts_.timeline.next(name); }
  void end_step() { parts_.timeline.end_step(); }

 private:
  const Parts& parts_;
  std::uint64_t step_ = 0;
  unsigned seen_ = 0;  ///< phases of this step, a bit each: faults come at the first of a kind
};

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
  // What agree() makes the same on all ranks; before it, this rank's own.
  bool trying = false;      ///< rank 0's program tried algorithms in it
  bool stop = false;        ///< some rank asked to stop after this step
  bool checkpoint = false;  ///< rank 0 asked for one after this step
};

/// One synchronous step of the whole training: forward and backward by micro-batch, one reduction,
/// one update. agree() ends it, unless its input was lost.
StepResult run_step(Parts&, Observer&, const StepToDo&);

/// Ends a step: adds up what all ranks must know of it. Algorithms that rank 0's program has found
/// to be the quickest are then used by all. The sums of the step `before`, which are returned,
/// are added up with that: a device has this step to compute by then, so it never waits for the
/// host. Nothing where no step is before it, or its sums are known.
compute::Tally agree(const RankProgram&, Observer&, const StepTally& before, StepResult&);

/// The sums of the step that was run last, by add_up(), where they cannot come with the next one.
/// The wait for them becomes part of the step.
compute::Tally finish_step(comm::Communicator&, StepResult&);

/// Sum over parameters that learn of l2 * sum of squares: what Keras adds to the mean loss that it
/// prints, in training (with the weights that the step began with) and in evaluation. It takes the
/// weights as they are when it is waited for.
compute::Pending<double> l2_penalty(compute::Backend&, const compute::ParameterLayout&,
                                    const Array& weights);

}  // namespace cputrain::loop
