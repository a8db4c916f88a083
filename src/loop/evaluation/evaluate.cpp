#include "loop/evaluation/evaluate.h"

#include <limits>

#include "core/error.h"
#include "loop/penalty.h"
#include "loop/safety/lost_input.h"
#include "loop/safety/numbers.h"

namespace cputrain::loop {

std::optional<compute::Tally> evaluate_while(const EvaluationCalls& calls,
                                             compute::Program& program, data::BatchSource& batches,
                                             const data::BatchPlan& plan,
                                             comm::Communicator& communicator) {
  const compute::Pass pass{.phase = compute::Phase::evaluate,
                           .probabilities = static_cast<bool>(calls.predictions)};
  communicator.pulse().at(comm::Phase::validate);
  batches.seek(0, 0);
  for (std::size_t step = 0; step < plan.steps(); ++step) {
    if (calls.goes_on && !calls.goes_on()) {
      (void)program.tally();  // lets go of what was summed
      return std::nullopt;
    }
    for (int k = 0; k < plan.micro_batches(step); ++k) {
      const compute::MicroBatch& batch = batches.next();
      program.forward(batch, pass);
      communicator.pulse().moved();
      if (batch.size() == 0) continue;
      if (calls.progress) calls.progress(batch.size());
      if (calls.predictions) calls.predictions(batch.labels, program.probabilities());
    }
  }
  compute::Tally tally = program.tally().wait();
  if (!lost_input(batches, communicator).empty()) return std::nullopt;
  comm::sum_numbers(communicator, tally.sums());
  return tally;
}

compute::Tally evaluate(compute::Program& program, data::BatchSource& batches,
                        const data::BatchPlan& plan, comm::Communicator& communicator,
                        const PredictionObserver& observer) {
  const auto tally =
      evaluate_while({.predictions = observer}, program, batches, plan, communicator);
  if (!tally) fail(ExitCode::data, lost_input(batches, communicator));
  return *tally;
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
