#pragma once

#include <memory>
#include <mutex>

#include "job/training_program.h"
#include "train/step.h"

namespace cputrain {

/// What trains around a compiled program, in the order in which it is made. Weights are as the
/// exchange made them until somebody fills them (start_weights.h). Borrows everything that it is
/// given but the batches.
class Training {
 public:
  Training(const Session&, const TrainingPlan&, const CompiledTraining&, const BatchPlan&,
           std::unique_ptr<BatchSource>);

  /// For train() and run_step().
  TrainingParts parts(Timeline&);
  /// Held while the weights change.
  std::mutex& weights_mutex() { return weights_mutex_; }

 private:
  const Session& session_;
  const CompiledTraining& compiled_;
  const BatchPlan& plan_;
  Optimizer optimizer_;
  LearningRate learning_rate_;
  std::unique_ptr<BatchSource> batches_;
  std::mutex weights_mutex_;
};

}  // namespace cputrain
