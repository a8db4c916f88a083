#include "train/evaluate.h"

#include <array>

namespace cputrain {

Tally evaluate(Program& program, BatchSource& batches, const BatchPlan& plan,
               Communicator& communicator, const AnswerObserver& observer) {
  Tally tally;
  batches.seek(0, 0);
  for (std::size_t step = 0; step < plan.steps(); ++step) {
    for (int k = 0; k < plan.micro_batches(step); ++k) {
      const MicroBatch& batch = batches.next();
      tally += program.forward(batch, {.phase = Phase::evaluate});
      if (observer && batch.size() > 0) observer(batch.labels, program.probabilities());
    }
  }
  std::array<double, 3> sums{tally.loss, tally.correct, tally.images};
  communicator.sum(Array::of<double>(sums));
  return {sums[0], sums[1], sums[2]};
}

}  // namespace cputrain
