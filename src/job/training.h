#pragma once

#include <memory>
#include <mutex>

#include "job/training_program.h"
#include "train/parts.h"

namespace cputrain::job {

/// What a compiled program needs to train: optimizer, learning rate, batches. Weights are as the
/// exchange made them until somebody fills them (start_weights.h). Borrows everything that it is
/// given but the batches.
class Training {
 public:
  Training(const Session&, const TrainingPlan&, const CompiledTraining&, const data::BatchPlan&,
           std::unique_ptr<data::BatchSource>);

  /// For train() and run_step().
  train::TrainingParts parts(train::Timeline&);
  train::Optimizer& optimizer() { return optimizer_; }
  optim::LearningRate& learning_rate() { return learning_rate_; }
  /// Held while the weights change.
  std::mutex& weights_mutex() { return weights_mutex_; }

 private:
  const Session& session_;
  const CompiledTraining& compiled_;
  const data::BatchPlan& plan_;
  train::Optimizer optimizer_;
  optim::LearningRate learning_rate_;
  std::unique_ptr<data::BatchSource> batches_;
  std::mutex weights_mutex_;
};

}  // namespace cputrain::job
