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
  batches.seek(0, 0);
  for (std::size_t step = 0; step < plan.steps(); ++step) {
    if (!goes_on()) return std::nullopt;
    for (int k = 0; k < plan.micro_batches(step); ++k) {
      const compute::MicroBatch& batch = batches.next();
      tally += program.forward(batch, {.phase = compute::Phase::evaluate});
      if (batch.size() == 0) continue;
      rank_answers(tally, batch.labels, program.probabilities());
      if (observer) observer(batch.labels, program.probabilities());
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
