#include "training/training.h"

#include <utility>

namespace cputrain::training {

Training::Training(const Session& session, const TrainingPlan& plan,
                   const CompiledTraining& compiled, const data::BatchPlan& batch_plan,
                   std::unique_ptr<data::BatchSource> batches)
    : session_(session),
      compiled_(compiled),
      plan_(batch_plan),
      optimizer_(plan.spec.optimizer, *session.backend, *compiled.exchange,
                 compiled.program->layout()),
      learning_rate_(plan.spec.learning_rate,
                     data::training_epochs(batch_plan, plan.spec.epochs, plan.spec.flags.steps)),
      batches_(std::move(batches)) {}

loop::TrainingParts Training::parts(loop::Timeline& timeline) {
  return {*session_.backend,   *compiled_.program,
          *compiled_.exchange, optimizer_,
          learning_rate_,      *session_.communicator,
          *batches_,           plan_,
          weights_mutex_,      timeline};
}

}  // namespace cputrain::training
