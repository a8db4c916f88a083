#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "comm/communicator.h"
#include "compute/backend.h"
#include "core/budget.h"
#include "data/batch_plan.h"
#include "data/batch_source.h"
#include "logging/timeline.h"
#include "optim/learning_rate.h"
#include "train/optimizer.h"

namespace cputrain::train {

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
};

struct StepResult {
  compute::Tally tally{};  ///< over all ranks; the loss has the L2 penalty in it
  Budget budget{};         ///< of this rank; adds up to `seconds`
  double seconds = 0;
  double own_images = 0;  ///< of this rank
  bool stop = false;      ///< some rank asked to stop after this step; all ranks see the same
  bool trying = false;    ///< rank 0's program tried algorithms in it; all ranks see the same
};

/// One synchronous step of the whole training: forward and backward by micro-batch, one reduction,
/// one update. `stop_requested` is asked once, when the weights are updated.
StepResult run_step(const TrainingParts&, const StepToDo&,
                    const std::function<bool()>& stop_requested);

}  // namespace cputrain::train
