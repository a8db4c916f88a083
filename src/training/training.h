#pragma once

#include <memory>
#include <mutex>

#include "loop/parts.h"
#include "training/training_program.h"

namespace cputrain::training {

/// What a compiled program needs to train: optimizer, learning rate, batches. Weights are as the
/// exchange made them until they are filled (start_weights.h). Borrows everything that it is given
/// but the batches.
class Training {
 public:
  Training(const Session&, const TrainingPlan&, const CompiledTraining&, const data::BatchPlan&,
           std::unique_ptr<data::BatchSource>);

  /// For train() and run_step().
  loop::TrainingParts parts(loop::Timeline&);
  loop::Optimizer& optimizer() { return optimizer_; }
  optim::LearningRate& learning_rate() { return learning_rate_; }
  /// Held while the weights change.
  std::mutex& weights_mutex() { return weights_mutex_; }

 private:
  const Session& session_;
  const CompiledTraining& compiled_;
  const data::BatchPlan& plan_;
  loop::Optimizer optimizer_;
  optim::LearningRate learning_rate_;
  std::unique_ptr<data::BatchSource> batches_;
  std::mutex weights_mutex_;
};

}  // namespace cputrain::training
