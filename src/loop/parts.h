#pragma once

#include <cstdint>
#include <mutex>

#include "comm/communicator.h"
#include "compute/backend.h"
#include "data/batch_plan.h"
#include "data/batch_source.h"
#include "loop/optimizer.h"
#include "loop/safety/nan_policy.h"
#include "loop/timeline.h"
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
  /// Held while the weights change: its holder sees those of a completed step.
  std::mutex& weights_mutex;
  Timeline& timeline;  ///< of this rank
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

}  // namespace cputrain::loop
