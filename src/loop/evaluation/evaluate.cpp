#include "loop/evaluation/evaluate.h"

#include <limits>

#include "core/error.h"
#include "loop/penalty.h"
#include "loop/safety/lost_input.h"
#include "loop/safety/numbers.h"

namespace cputrain::loop {

namespace {

/// Whom an evaluation asks and tells; those that are empty are left out.
struct Listeners {
  std::function<bool()> goes_on{};
  EvaluationProgress progress{};
  AnswerObserver answers{};
};

std::optional<compute::Tally> evaluate_for(const Listeners& listeners, compute::Program& program,
                                           data::BatchSource& batches, const data::BatchPlan& plan,
                                           comm::Communicator& communicator) {
  const compute::Pass pass{.phase = compute::Phase::evaluate,
                           .probabilities = static_cast<bool>(listeners.answers)};
  communicator.pulse().at(comm::Phase::validate);
  batches.seek(0, 0);
  for (std::size_t step = 0; step < plan.steps(); ++step) {
    if (listeners.goes_on && !listeners.goes_on()) {
      (void)program.tally();  // of an evaluation that nobody ends
      return std::nullopt;
    }
    for (int k = 0; k < plan.micro_batches(step); ++k) {
      const compute::MicroBatch& batch = batches.next();
      program.forward(batch, pass);
      communicator.pulse().moved();
      if (batch.size() == 0) continue;
      if (listeners.progress) listeners.progress(batch.size());
      if (listeners.answers) listeners.answers(batch.labels, program.probabilities());
    }
  }
  compute::Tally tally = program.tally().wait();
  if (!lost_input(batches, communicator).empty()) return std::nullopt;
  comm::sum_numbers(communicator, tally.sums());
  return tally;
}

}  // namespace

compute::Tally evaluate(compute::Program& program, data::BatchSource& batches,
                        const data::BatchPlan& plan, comm::Communicator& communicator,
                        const AnswerObserver& observer) {
  const auto tally = evaluate_for({.answers = observer}, program, batches, plan, communicator);
  if (!tally) fail(ExitCode::data, lost_input(batches, communicator));
  return *tally;
}

std::optional<compute::Tally> evaluate_while(const std::function<bool()>& goes_on,
                                             compute::Program& program, data::BatchSource& batches,
                                             const data::BatchPlan& plan,
                                             comm::Communicator& communicator,
                                             const EvaluationProgress& progress) {
  return evaluate_for({.goes_on = goes_on, .progress = progress}, program, batches, plan,
                      communicator);
}

void add_loss_of_weights(compute::Tally& tally, compute::Backend& backend,
                         const compute::ParameterLayout& layout, const Array& weights,
                         comm::Communicator& communicator) {
  if (all_numbers(backend.memory(), weights, communicator)) {
    tally.loss += tally.images * l2_penalty(backend, layout, weights).wait();
  } else {
    tally.loss = std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace cputrain::loop
