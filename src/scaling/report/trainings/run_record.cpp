#include "scaling/report/trainings/run_record.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/json_fields.h"
#include "core/json_text.h"
#include "core/statistics/statistics.h"
#include "core/text.h"
#include "runfiles/metrics.h"
#include "system/bounded_file.h"

namespace cputrain::report {
namespace {

/// Those that show the speed of the network; the first finds algorithms.
std::vector<double> rates_of(std::vector<runfiles::EpochLine> epochs, bool settled_only) {
  std::erase_if(epochs, [](const runfiles::EpochLine& e) { return !e.is_of_network(); });
  std::vector<double> rates;
  for (std::size_t i = settled_only || epochs.size() > 1 ? 1 : 0; i < epochs.size(); ++i) {
    const runfiles::EpochLine& epoch = epochs[i];
    if (settled_only && !epoch.is_settled()) continue;
    if (epoch.images > 0 && epoch.seconds > 0)
      rates.push_back(static_cast<double>(epoch.images) / epoch.seconds);
  }
  return rates;
}

namespace fs = std::filesystem;

// What eval left in the folder.

constexpr std::uintmax_t kMostLog = 16 << 20, kMostLogLine = 1 << 16;  // bytes
constexpr std::size_t kMostEvaluations = 100;                          // by one run in a report

std::optional<training::EvaluationFacts> evaluation_of(const std::string& text) {
  nlohmann::json line;
  try {
    line = parse_strict_json(text);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
  if (!line.is_object()) return std::nullopt;
  const auto images = whole_in(line, "images", 1, kMostCounted);
  if (!images) return std::nullopt;
  training::EvaluationFacts evaluation{.weights = text_in(line, "weights"),
                                       .data = text_in(line, "data"),
                                       .part = text_in(line, "part"),
                                       .date = text_in(line, "date"),
                                       .build = text_in(line, "build"),
                                       .command = text_in(line, "command"),
                                       .looks = text_in(line, "tta"),
                                       .doubt = text_in(line, "doubt"),
                                       .images = *images};
  evaluation.loss = number_in(line, "loss", -kMostCounted).value_or(std::nan(""));
  evaluation.accuracy = number_in(line, "accuracy", 0, 1);
  return evaluation;
}

bool replaces(const training::EvaluationFacts& later, const training::EvaluationFacts& earlier) {
  return later.weights == earlier.weights && later.data == earlier.data &&
         later.part == earlier.part && later.looks == earlier.looks;
}

/// The newest first.
std::vector<training::EvaluationFacts> newest_of_each(
    const std::vector<training::EvaluationFacts>& all) {
  std::vector<training::EvaluationFacts> newest;
  for (auto one = all.rbegin(); one != all.rend() && newest.size() < kMostEvaluations; ++one) {
    const auto is_replaced = [&](const training::EvaluationFacts& later) {
      return replaces(later, *one);
    };
    if (std::ranges::none_of(newest, is_replaced)) newest.push_back(*one);
  }
  return newest;
}

// Curves.

void thin(std::vector<double>& values, std::size_t most) {
  const std::size_t n = values.size();
  if (n <= most) return;
  for (std::size_t i = 0; i < most; ++i) values[i] = values[i * (n - 1) / (most - 1)];
  values.resize(most);
}

}  // namespace

std::optional<double> RunRecord::seconds_until(int epoch) const {
  double sum = 0;
  int expected = 1;
  for (const runfiles::EpochLine& e : epochs) {
    if (e.epoch != expected++) return std::nullopt;
    sum += e.seconds;
    if (e.epoch == epoch) return sum;
  }
  return std::nullopt;
}

std::optional<BestAccuracy> RunRecord::best() const {
  const runfiles::EpochLine* best = nullptr;
  for (const runfiles::EpochLine& e : epochs) {
    if (e.val_accuracy() && (!best || *e.val_accuracy() > *best->val_accuracy())) best = &e;
  }
  if (!best) return std::nullopt;
  return BestAccuracy{best->epoch, *best->val_accuracy(), seconds_until(best->epoch)};
}

std::optional<BestAccuracy> RunRecord::first_with(double accuracy) const {
  const auto found = std::ranges::find_if(
      epochs, [&](const runfiles::EpochLine& e) { return e.val_accuracy() >= accuracy; });
  if (found == epochs.end()) return std::nullopt;
  return BestAccuracy{found->epoch, *found->val_accuracy(), seconds_until(found->epoch)};
}

std::optional<double> RunRecord::val_loss() const {
  for (auto e = epochs.rbegin(); e != epochs.rend(); ++e) {
    if (e->val_loss()) return e->val_loss();
  }
  return std::nullopt;
}

std::optional<double> RunRecord::total_seconds() const {
  if (seconds || epochs.empty()) return seconds;
  double sum = 0;
  for (const runfiles::EpochLine& e : epochs) sum += e.seconds + e.validation_seconds;
  return sum;
}

std::optional<double> RunRecord::images_per_second() const {
  std::vector<double> rates = rates_of(epochs, true);
  if (rates.empty()) rates = rates_of(epochs, false);
  return rates.empty() ? std::nullopt : std::optional(median(std::move(rates)));
}

std::optional<double> RunRecord::seconds_from_features() const {
  std::vector<double> all;
  for (const runfiles::EpochLine& e : epochs) {
    if (!e.is_of_network()) all.push_back(e.seconds);
  }
  return all.empty() ? std::nullopt : std::optional(median(std::move(all)));
}

runfiles::EpochLine RunRecord::time() const {
  runfiles::EpochLine time{.budget = Budget{}};
  for (const runfiles::EpochLine& e : epochs) {
    if (e.budget) *time.budget += *e.budget, time.seconds += e.seconds;
  }
  for (const auto part : {&TakenTime::stolen, &TakenTime::cpu_wait}) {
    double taken = 0, of = 0;
    for (const runfiles::EpochLine& e : epochs) {
      if (e.taken.*part) taken += *(e.taken.*part) * e.seconds, of += e.seconds;
    }
    if (of > 0) time.taken.*part = taken / of;
  }
  return time;
}

std::optional<std::uint64_t> RunRecord::validation_images() const {
  for (const runfiles::EpochLine& e : epochs) {
    if (e.validation_images > 0) return e.validation_images;
  }
  return std::nullopt;
}

bool RunRecord::includes_trials() const {
  return images_per_second().has_value() && rates_of(epochs, true).empty();
}

std::vector<training::EvaluationFacts> read_evaluations(const fs::path& file,
                                                        std::vector<std::string>& troubles) {
  std::vector<training::EvaluationFacts> evaluations;
  if (!system::is_present(file)) return evaluations;
  std::size_t faults = 0;
  try {
    system::BoundedLines lines(file, kMostLog, kMostLogLine);
    while (const auto line = lines.next()) {
      auto evaluation = evaluation_of(*line);
      if (!evaluation) {
        ++faults;
        continue;
      }
      evaluations.push_back(std::move(*evaluation));
    }
  } catch (const std::runtime_error& problem) {
    troubles.push_back(fmt::format("{}: {}", file.filename().string(), printable(problem.what())));
  }
  if (faults > 0) {
    troubles.push_back(fmt::format("{}: {} line{} cannot be read (the others count)",
                                   file.filename().string(), faults, faults == 1 ? "" : "s"));
  }
  return newest_of_each(evaluations);
}

double rounded(double value) {
  const double unit = std::pow(10, std::floor(std::log10(std::max(std::fabs(value), 1e-12))) - 4);
  return unit < 1 ? std::round(value / unit) / std::round(1 / unit) : value;
}

Curve read_curve(const std::filesystem::path& metrics, std::size_t most) {
  Curve curve;
  const auto steps = runfiles::read_metrics_and_steps(metrics).steps;
  const bool timed = std::ranges::all_of(
      steps, [](const runfiles::StepLine& line) { return line.seconds.has_value(); });
  std::uint64_t step = 0;
  double seconds = 0, seen = 0;
  for (const runfiles::StepLine& line : steps) {
    const auto more = static_cast<double>(line.step - step);
    seen = line.images_seen ? static_cast<double>(*line.images_seen)
                            : seen + static_cast<double>(line.images) * more;
    seconds += line.seconds.value_or(0) * more;
    step = line.step;
    const std::optional<double> loss = line.figures.finite_loss();
    if (!loss || !line.figures.accuracy) continue;
    // A hostile file may count backwards: points go from left to right all the same.
    curve.images.push_back(curve.images.empty() ? seen : std::max(seen, curve.images.back()));
    curve.loss.push_back(*loss);
    curve.accuracy.push_back(*line.figures.accuracy);
    if (timed) curve.seconds.push_back(seconds);
  }
  for (auto* values : {&curve.images, &curve.loss, &curve.accuracy, &curve.seconds}) {
    thin(*values, most);
  }
  return curve;
}

}  // namespace cputrain::report
