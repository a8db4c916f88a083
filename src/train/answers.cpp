#include "train/answers.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "compute/prediction.h"

namespace cputrain::train {
namespace {

constexpr std::size_t kFive = 5;

bool none_is_nan(std::span<const float> values) {
  return std::ranges::none_of(values, [](float value) { return std::isnan(value); });
}

}  // namespace

std::vector<float> class_probabilities(std::span<const float> outputs) {
  if (outputs.size() == 1) return {1 - outputs[0], outputs[0]};
  return {outputs.begin(), outputs.end()};
}

bool among_best(std::span<const float> probabilities, std::size_t truth, std::size_t k) {
  if (!none_is_nan(probabilities)) return false;
  std::size_t before = 0;
  for (std::size_t c = 0; c < probabilities.size(); ++c) {
    const bool tie_won = probabilities[c] == probabilities[truth] && c < truth;
    before += probabilities[c] > probabilities[truth] || tie_won;
  }
  return before < k;
}

bool ranks_answers(int outputs) { return outputs > static_cast<int>(kFive); }

void rank_answers(compute::Tally& tally, std::span<const std::int32_t> labels,
                  std::span<const float> outputs) {
  const std::size_t classes = labels.empty() ? 0 : outputs.size() / labels.size();
  if (!ranks_answers(static_cast<int>(classes))) return;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto truth = static_cast<std::size_t>(labels[i]);
    tally.among_five += among_best(outputs.subspan(i * classes, classes), truth, kFive);
  }
  tally.ranked += static_cast<double>(labels.size());
}

AnswerCounts::AnswerCounts(std::size_t classes)
    : classes_(classes), sums_(place(kMatrix + (classes <= kMostInMatrix ? classes : 0), 0)) {}

void AnswerCounts::add(std::span<const std::int32_t> labels, std::span<const float> outputs) {
  if (labels.empty()) return;
  const std::size_t width = outputs.size() / labels.size();
  assert(outputs.size() == width * labels.size() && (width == classes_ || width == 1));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = outputs.subspan(i * width, width);
    const auto probabilities = class_probabilities(row);
    const auto truth = static_cast<std::size_t>(labels[i]);
    const auto answer = compute::predicted_class(row);
    ++sums_[kImages];
    sums_[kCorrect] += answer == truth;
    sums_[kAmongFive] += among_best(probabilities, truth, kFive);
    sums_[kUndecided] += !answer;
    ++sums_[place(kActual, truth)];
    if (!answer) continue;
    ++sums_[place(kAnswered, *answer)];
    sums_[place(kRight, truth)] += answer == truth;
    if (has_matrix()) ++sums_[place(kMatrix + truth, *answer)];
  }
}

void AnswerCounts::sum(comm::Communicator& communicator) {
  communicator.sum(Array::of<double>(sums_));
}

}  // namespace cputrain::train
