#include "train/evaluate.h"

#include <limits>

#include "train/answers.h"
#include "train/numbers.h"
#include "train/penalty.h"

namespace cputrain::train {

compute::Tally evaluate(compute::Program& program, data::BatchSource& batches,
                        const data::BatchPlan& plan, comm::Communicator& communicator,
                        const AnswerObserver& observer) {
  const auto always = [] { return true; };
  return *evaluate_while(always, program, batches, plan, communicator, observer);
}

std::optional<compute::Tally> evaluate_while(const std::function<bool()>& goes_on,
                                             compute::Program& program, data::BatchSource& batches,
                                             const data::BatchPlan& plan,
                                             comm::Communicator& communicator,
                                             const AnswerObserver& observer) {
  compute::Tally tally;
  const compute::Pass pass{.phase = compute::Phase::evaluate,
                           .probabilities = observer || ranks_answers(program.outputs())};
  batches.seek(0, 0);
  for (std::size_t step = 0; step < plan.steps(); ++step) {
    if (!goes_on()) return std::nullopt;
    for (int k = 0; k < plan.micro_batches(step); ++k) {
      const compute::MicroBatch& batch = batches.next();
      tally += program.forward(batch, pass);
      if (batch.size() == 0 || !pass.probabilities) continue;
      const std::span<const float> outputs = program.probabilities();
      rank_answers(tally, batch.labels, outputs);
      if (observer) observer(batch.labels, outputs);
    }
  }
  comm::sum_numbers(communicator, tally.sums());
  return tally;
}

void add_loss_of_weights(compute::Tally& tally, compute::Backend& backend,
                         const compute::ParameterLayout& layout, const Array& weights,
                         comm::Communicator& communicator) {
  if (all_numbers(backend.memory(), weights, communicator)) {
    tally.loss += tally.images * l2_penalty(backend, layout, weights);
  } else {
    tally.loss = std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace cputrain::train
