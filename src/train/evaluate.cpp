#include "train/evaluate.h"

#include <array>

namespace cputrain {

Tally evaluate(Program& program, BatchSource& batches, const BatchPlan& plan,
               Communicator& communicator) {
  Tally tally;
  batches.seek(0, 0);
  for (std::size_t step = 0; step < plan.steps(); ++step) {
    for (int k = 0; k < plan.micro_batches(step); ++k) {
      tally += program.forward(batches.next(), {.phase = Phase::evaluate});
    }
  }
  std::array<double, 3> sums{tally.loss, tally.correct, tally.images};
  communicator.sum(Array::of<double>(sums));
  return {sums[0], sums[1], sums[2]};
}

}  // namespace cputrain
