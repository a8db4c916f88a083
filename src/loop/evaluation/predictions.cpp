#include "loop/evaluation/predictions.h"

#include <cassert>

namespace cputrain::loop {
std::vector<float> class_probabilities(std::span<const float> outputs) {
  if (outputs.size() == 1) return {1 - outputs[0], outputs[0]};
  return {outputs.begin(), outputs.end()};
}

void average_outputs(std::span<float> outputs, std::span<const float> of_mirrored) {
  assert(outputs.size() == of_mirrored.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = (outputs[i] + of_mirrored[i]) / 2;
}

PredictionCounts::PredictionCounts(std::size_t classes)
    : classes_(classes), sums_(place(kMatrix + (classes <= kMostInMatrix ? classes : 0), 0)) {}

void PredictionCounts::add(std::span<const std::int32_t> labels, std::span<const float> outputs) {
  if (labels.empty()) return;
  const std::size_t width = outputs.size() / labels.size();
  assert(outputs.size() == width * labels.size() && (width == classes_ || width == 1));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = outputs.subspan(i * width, width);
    const auto probabilities = class_probabilities(row);
    const auto truth = static_cast<std::size_t>(labels[i]);
    const auto prediction = compute::predicted_class(row);
    ++sums_[kImages];
    sums_[kCorrect] += prediction == truth;
    sums_[kAmongFive] +=
        compute::among_best(std::span<const float>(probabilities), truth, compute::kFive);
    sums_[kUndecided] += !prediction;
    ++sums_[place(kActual, truth)];
    if (!prediction) continue;
    ++sums_[place(kPredicted, *prediction)];
    sums_[place(kRight, truth)] += prediction == truth;
    if (has_matrix()) ++sums_[place(kMatrix + truth, *prediction)];
  }
}

void PredictionCounts::sum(comm::Communicator& communicator) {
  communicator.sum(Array::of<double>(sums_));
}

}  // namespace cputrain::loop
