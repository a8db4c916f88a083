#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "comm/communicator.h"
#include "compute/backend.h"
#include "core/budget.h"
#include "data/batch_plan.h"
#include "data/batch_source.h"
#include "logging/timeline.h"
#include "loop/optimizer.h"
#include "loop/safety/nan_policy.h"
#include "optim/learning_rate.h"

namespace cputrain::loop {

/// What a training works on; all borrowed.
struct TrainingParts {
  compute::Backend& backend;
  compute::Program& program;
  exchange::GradientExchange& exchange;
  Optimizer& optimizer;
  optim::LearningRate& learning_rate;
  comm::Communicator& communicator;
  data::BatchSource& batches;
  const data::BatchPlan& plan;
  /// Held while the weights change: whoever holds it sees those of a completed step.
  std::mutex& weights_mutex;
  logging::Timeline& timeline;  ///< of this rank
};

/// Which step of the training is to be made.
struct StepToDo {
  const data::BatchPlan& plan;  ///< of this epoch
  std::size_t in_epoch;         ///< from 0
  std::uint64_t step;           ///< from 0, over the training
  std::uint64_t seed;
  double learning_rate;
  NanPolicy on_nan = NanPolicy::abort;
  bool left_out = false;  ///< it changes nothing, whatever its gradients are
};

/// What a rank wants to happen after a step.
struct StepWishes {
  bool stop = false;        ///< of any rank: all stop
  bool checkpoint = false;  ///< of rank 0 alone
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
  StepTally tally{};      ///< of this rank
  Budget budget{};        ///< of this rank; adds up to `seconds`
  double seconds = 0;     ///< of the host, which may be ahead of a device
  double own_images = 0;  ///< of this rank
  double waited = 0;      ///< seconds in which this rank had nothing to do but wait for others
  // Of these all ranks see the same.
  compute::Tally before{};  ///< as add_up() gives it of the step before
  bool stop = false;        ///< some rank asked to stop after this step
  bool checkpoint = false;  ///< rank 0 asked for one after this step
  bool trying = false;      ///< rank 0's program tried algorithms in it
  /// It has changed nothing, neither weights nor optimizer state nor statistics: it was left out,
  /// or its gradients, summed over ranks, are no numbers and the policy is not to abort.
  bool skipped = false;
  /// Why its images were not the data's; empty where they were. Then it was given up before its
  /// gradients, has changed nothing and asked for no wishes.
  std::string lost_input{};
};

/// One synchronous step of the whole training: forward and backward by micro-batch, one reduction,
/// one update. `wishes` are asked for once, when the weights are updated. The sums of the step
/// `before` are added up with them: a device has this step to compute by then, so it never waits
/// for the host. Nothing where no step is before it, or its sums are known.
StepResult run_step(const TrainingParts&, const StepToDo&, const StepTally& before,
                    const std::function<StepWishes()>& wishes);

/// The sums of the step that was run last, by add_up(), for whom they cannot come with the next
/// one. The wait for them becomes part of the step.
compute::Tally finish_step(comm::Communicator&, StepResult&);

}  // namespace cputrain::loop
