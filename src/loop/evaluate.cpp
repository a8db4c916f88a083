#include "loop/evaluate.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "loop/evaluation/predictions.h"
#include "loop/replicas.h"
#include "loop/step.h"
#include "loop/update_gate.h"

namespace cputrain::loop {
namespace {

/// Rows of probabilities, and what they say about images of these labels.
void add_predictions(std::span<const float> outputs, std::span<const std::int32_t> labels,
                     compute::Tally& tally) {
  const std::size_t width = outputs.size() / labels.size();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = outputs.subspan(i * width, width);
    const auto truth = static_cast<std::size_t>(labels[i]);
    const float probability = class_probabilities(row)[truth];
    const float counted = probability < kLeastProbability ? kLeastProbability : probability;
    tally.loss -= std::log(static_cast<double>(counted));  // NaN stays
    compute::count_prediction(row, truth, tally);
  }
}

}  // namespace

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

compute::Tally evaluate_mirrored(compute::Program& program, data::BatchSource& batches,
                                 data::BatchSource& mirrored, const data::BatchPlan& plan,
                                 comm::Communicator& communicator,
                                 const PredictionObserver& observer) {
  constexpr compute::Pass kPass{.phase = compute::Phase::evaluate, .probabilities = true};
  communicator.pulse().at(comm::Phase::validate);
  batches.seek(0, 0);
  mirrored.seek(0, 0);
  compute::Tally tally;
  for (std::size_t step = 0; step < plan.steps(); ++step) {
    for (int k = 0; k < plan.micro_batches(step); ++k) {
      const compute::MicroBatch& batch = batches.next();
      program.forward(batch, kPass);
      const auto plain = program.probabilities();
      std::vector<float> mean(plain.begin(), plain.end());
      program.forward(mirrored.next(), kPass);
      communicator.pulse().moved();
      if (batch.size() == 0) continue;
      average_outputs(mean, program.probabilities());
      add_predictions(mean, batch.labels, tally);
      observer(batch.labels, mean);
    }
  }
  (void)program.tally();  // the single passes' sums
  for (data::BatchSource* const source : {&batches, &mirrored}) {
    const std::string lost = lost_input(*source, communicator);
    if (!lost.empty()) fail(ExitCode::data, lost);
  }
  comm::sum_numbers(communicator, tally.sums());
  return tally;
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
