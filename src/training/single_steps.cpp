#include "training/single_steps.h"

#include <utility>

#include "core/error.h"

namespace cputrain::training {

double SingleSteps::next(double learning_rate) {
  loop::Parts& parts = training_.parts();
  if (!plan_ || in_epoch_ == plan_->steps()) {
    plan_ = parts.plan.in_epoch(epoch_);
    in_epoch_ = 0;
    parts.batches->seek(epoch_++, 0);
  }
  make(*plan_, in_epoch_++, learning_rate);
  const double loss = loop::finish_step(parts.communicator, last_).mean_loss();
  last_.tally = {};  // known by now
  return loss;
}

void SingleSteps::begin_epoch(double learning_rate) {
  loop::Parts& parts = training_.parts();
  plan_.reset();
  parts.batches->seek(epoch_++, 0);
  make(parts.plan, 0, learning_rate);
}

void SingleSteps::make(const data::BatchPlan& plan, std::size_t in_epoch, double learning_rate) {
  loop::Parts& parts = training_.parts();
  const std::uint64_t number = made_++;
  loop::Observer observer(parts);
  loop::StepResult step = loop::run_step(parts, observer,
                                         {.plan = plan,
                                          .in_epoch = in_epoch,
                                          .step = number,
                                          .updates = number,
                                          .seed = training_.plan().spec.seed,
                                          .learning_rate = learning_rate});
  if (!step.lost_input.empty()) fail(ExitCode::data, step.lost_input);
  loop::agree(parts, observer, last_.tally, step);
  last_ = std::move(step);
}

}  // namespace cputrain::training
