#include "loop/evaluate.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/error.h"
#include "loop/replicas.h"
#include "loop/step.h"

namespace cputrain::loop {
namespace {

std::optional<double> ratio(double part, double all) {
  return all > 0 ? std::optional(part / all) : std::nullopt;
}

/// All ranks' values, in their order.
template <class T>
std::vector<T> gather_all(comm::Communicator& communicator, const std::vector<T>& mine) {
  const std::string_view bytes(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(T));
  std::vector<T> all;
  for (const std::string& theirs : communicator.gather(bytes)) {
    const std::size_t before = all.size(), count = theirs.size() / sizeof(T);
    all.resize(before + count);
    if (count) std::memcpy(all.data() + before, theirs.data(), count * sizeof(T));
  }
  return all;
}

bool surer(const WrongPrediction& a, const WrongPrediction& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.image < b.image;
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

void add_loss_of_weights(compute::Tally& tally, compute::Backend& backend,
                         const compute::ParameterLayout& layout, const Array& weights,
                         comm::Communicator& communicator) {
  if (all_numbers(backend.memory(), weights, communicator)) {
    tally.loss += tally.images * l2_penalty(backend, layout, weights).wait();
  } else {
    tally.loss = std::numeric_limits<double>::quiet_NaN();
  }
}

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

std::optional<double> ClassCounts::recall() const { return ratio(correct, images); }
std::optional<double> ClassCounts::precision() const { return ratio(correct, predictions); }
std::optional<double> ClassCounts::f1() const { return ratio(2 * correct, images + predictions); }

std::optional<MacroAverages> PredictionCounts::macro_averages() const {
  MacroAverages sums;
  double classes = 0;
  for (std::size_t label = 0; label < classes_; ++label) {
    const ClassCounts counts = of_class(label);
    const auto f1 = counts.f1();
    if (!f1) continue;
    ++classes;
    sums.recall += counts.recall().value_or(0);
    sums.precision += counts.precision().value_or(0);
    sums.f1 += *f1;
  }
  if (classes == 0) return std::nullopt;
  return MacroAverages{sums.recall / classes, sums.precision / classes, sums.f1 / classes};
}

void RocScores::add(std::span<const std::int32_t> labels, std::span<const float> outputs) {
  if (labels.empty()) return;
  const std::size_t width = outputs.size() / labels.size();
  assert(outputs.size() == width * labels.size() && (width == 1 || width == 2));
  for (std::size_t i = 0; i < labels.size(); ++i)
    scores_[static_cast<std::size_t>(labels[i])].push_back(outputs[(i + 1) * width - 1]);
}

std::optional<double> RocScores::area(comm::Communicator& communicator) const {
  std::vector<float> first = gather_all(communicator, scores_[0]),
                     second = gather_all(communicator, scores_[1]);
  const auto is_nan = [](float score) { return std::isnan(score); };
  if (first.empty() || second.empty() || std::ranges::any_of(first, is_nan) ||
      std::ranges::any_of(second, is_nan)) {
    return std::nullopt;
  }
  std::ranges::sort(first);
  // Pairs of an image of each class, in which the second one's score is higher; halves of equals.
  double halves = 0;
  for (const float score : second) {
    const auto below = std::ranges::lower_bound(first, score) - first.begin(),
               not_above = std::ranges::upper_bound(first, score) - first.begin();
    halves += static_cast<double>(below + not_above);
  }
  return halves / 2 / (static_cast<double>(first.size()) * static_cast<double>(second.size()));
}

void PredictionCounts::sum(comm::Communicator& communicator) {
  communicator.sum(Array::of<double>(sums_));
}

void SurestErrors::keep(const WrongPrediction& error) {
  const auto place = std::ranges::upper_bound(kept_, error, surer);
  if (place == kept_.end() && kept_.size() >= most_) return;
  kept_.insert(place, error);
  if (kept_.size() > most_) kept_.pop_back();
}

void SurestErrors::add(std::span<const std::uint64_t> images, std::span<const std::int32_t> labels,
                       std::span<const float> outputs) {
  if (labels.empty()) return;
  const std::size_t width = outputs.size() / labels.size();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = outputs.subspan(i * width, width);
    const auto truth = static_cast<std::size_t>(labels[i]);
    const auto prediction = compute::predicted_class(row);
    if (!prediction || *prediction == truth) continue;
    const std::vector<float> probabilities = class_probabilities(row);
    keep({images[i], static_cast<std::uint32_t>(truth), static_cast<std::uint32_t>(*prediction),
          probabilities[*prediction], probabilities[truth]});
  }
}

std::vector<WrongPrediction> SurestErrors::gather(comm::Communicator& communicator) const {
  SurestErrors all(most_);
  for (const WrongPrediction& error : gather_all(communicator, kept_)) all.keep(error);
  return all.kept_;
}

std::vector<std::uint64_t> evaluation_order(const data::BatchPlan& plan) {
  std::vector<std::uint64_t> order;
  for (std::size_t step = 0; step < plan.steps(); ++step) {
    for (int k = 0; k < plan.micro_batches(step); ++k) {
      const data::StridedRange piece = plan.piece(step, k);
      for (std::size_t i = 0; i < piece.size(); ++i) order.push_back(piece.at(i));
    }
  }
  return order;
}

}  // namespace cputrain::loop
