#include "sweep/run_figures.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/median.h"
#include "core/strict_json.h"

namespace cputrain {
namespace {

using nlohmann::json;

/// The lines of metrics.jsonl by what they are of.
struct Lines {
  std::vector<json> steps, epochs;
  json summary;
};

std::optional<Lines> lines_of(const std::filesystem::path& run) {
  Lines lines;
  std::ifstream stream(run / "metrics.jsonl");
  for (std::string text; std::getline(stream, text);) {
    json line = parse_strict_json(text);
    const std::string type = line.at("type");
    if (type == "step")
      lines.steps.push_back(std::move(line));
    else if (type == "epoch")
      lines.epochs.push_back(std::move(line));
    else if (type == "summary")
      lines.summary = std::move(line);
  }
  // Written last, when the training has come to its end.
  if (!lines.summary.is_object() || lines.summary.at("outcome") != "finished") return std::nullopt;
  return lines;
}

std::optional<double> known(const json& object, const char* key) {
  if (!object.contains(key) || !object.at(key).is_number()) return std::nullopt;
  return object.at(key).get<double>();
}

Budget budget_of(const json& object) {
  Budget budget;
  for (const BudgetPart& part : kBudgetParts) budget.*part.seconds = object.at(part.name);
  return budget;
}

/// Shares of what was measured, as parts of `seconds`. `where`: with "seconds" and "budget".
std::optional<Budget> budget_of(const json& where, double seconds) {
  const double measured = where.at("seconds").get<double>();
  if (!(measured > 0)) return std::nullopt;
  return budget_of(where.at("budget")) * (seconds / measured);
}

/// What the training came to.
void read_results(const Lines& lines, RunFigures& figures) {
  figures.loss = known(lines.summary, "loss");
  figures.accuracy = known(lines.summary, "accuracy");
  figures.val_accuracy = known(lines.summary, "val_accuracy");
  figures.had_target = lines.summary.contains("time_to_accuracy");
  if (figures.had_target && lines.summary["time_to_accuracy"].is_object()) {
    figures.seconds_to_target = known(lines.summary["time_to_accuracy"], "seconds");
  }
}

void read_limits(const std::filesystem::path& run, RunFigures& figures) {
  std::ifstream stream(run / "limits.json");
  if (!stream) return;
  const json limits = parse_strict_json({std::istreambuf_iterator<char>(stream), {}});
  figures.fma_gflops = known(limits, "fma_gflops");
  figures.triad_gbs = known(limits, "triad_gbs");
}

/// Lines of steps or of epochs.
struct Measured {
  std::vector<const json*> lines;
  bool includes_warm_up;

  std::vector<double> seconds() const {
    std::vector<double> values;
    for (const json* line : lines) values.push_back(line->at("seconds"));
    return values;
  }
};

/// The settled ones, where there are any.
Measured chosen(std::vector<const json*> all, std::vector<const json*> settled) {
  const bool none = settled.empty();
  return {none ? std::move(all) : std::move(settled), none};
}

Measured whole_steps(const Lines& lines, std::size_t images) {
  std::vector<const json*> all, settled;
  for (const json& step : lines.steps) {
    if (step.at("images") != images) continue;
    all.push_back(&step);
    if (step.at("step") > 1 && !step.contains("trying")) settled.push_back(all.back());
  }
  return chosen(std::move(all), std::move(settled));
}

/// No step but the first, which is never settled, tried algorithms.
bool is_settled(const json& epoch) {
  return epoch.at("settled").at("steps").get<int>() >= epoch.at("steps").get<int>() - 1;
}

Measured whole_epochs(const Lines& lines) {
  std::vector<const json*> all, settled;
  for (const json& epoch : lines.epochs) {
    all.push_back(&epoch);
    if (all.size() > 1 && is_settled(epoch)) settled.push_back(all.back());
  }
  if (all.size() > 1) all.erase(all.begin());
  return chosen(std::move(all), std::move(settled));
}

/// The median of what epochs lost, where all of them say.
std::optional<double> stolen_of(const std::vector<const json*>& epochs) {
  std::vector<double> parts;
  for (const json* epoch : epochs) {
    const auto part = known(*epoch, "stolen");
    if (!part || *part < 0 || *part > 1) return std::nullopt;
    parts.push_back(*part);
  }
  return parts.empty() ? std::nullopt : std::optional(median(std::move(parts)));
}

RunFigures scaled_from(const Lines& lines, const Cell& cell, const EpochSize& epoch,
                       const StepPlan& plan) {
  const Measured measured = whole_steps(lines, epoch.images_of_step(cell.batch));
  std::vector<double> seconds = measured.seconds();
  if (seconds.empty()) return {};
  const auto wanted = static_cast<std::size_t>(plan.measured);
  if (seconds.size() > wanted) {
    seconds.erase(seconds.begin(), seconds.end() - static_cast<std::ptrdiff_t>(wanted));
  }
  RunFigures figures;
  figures.includes_warm_up = measured.includes_warm_up;
  figures.steps = static_cast<int>(seconds.size());
  figures.step_seconds = median(std::move(seconds));
  figures.seconds_per_epoch = figures.step_seconds * epoch.steps(cell.batch);
  // Of the epoch with the most settled steps.
  const auto most = std::ranges::max_element(
      lines.epochs, {}, [](const json& line) { return line.at("settled").at("steps").get<int>(); });
  if (most == lines.epochs.end()) return figures;
  const bool any = most->at("settled").at("steps") > 0;
  figures.budget = budget_of(any ? most->at("settled") : *most, figures.seconds_per_epoch);
  figures.stolen = stolen_of({&*most});
  figures.watched_seconds = most->at("seconds");
  return figures;
}

RunFigures measured_from(const Lines& lines) {
  const Measured measured = whole_epochs(lines);
  RunFigures figures;
  figures.includes_warm_up = measured.includes_warm_up;
  figures.steps = 0;
  for (const json& epoch : lines.epochs) figures.steps += epoch.at("steps").get<int>();
  figures.steps /= static_cast<int>(lines.epochs.size());
  figures.seconds_per_epoch = median(measured.seconds());
  figures.step_seconds = figures.seconds_per_epoch / std::max(figures.steps, 1);
  figures.budget = budget_of(lines.epochs.back(), figures.seconds_per_epoch);
  figures.stolen = stolen_of(measured.lines);
  for (const double seconds : measured.seconds()) figures.watched_seconds += seconds;
  read_results(lines, figures);
  return figures;
}

/// Nothing where the run is not whole or its files are not what a training writes.
std::optional<RunFigures> figures_of(const std::filesystem::path& run,
                                     const std::function<RunFigures(const Lines&)>& read) {
  try {
    const std::optional<Lines> lines = lines_of(run);
    if (!lines || lines->epochs.empty()) return std::nullopt;
    RunFigures figures = read(*lines);
    if (!(figures.seconds_per_epoch > 0) || !std::isfinite(figures.seconds_per_epoch)) {
      return std::nullopt;
    }
    read_limits(run, figures);
    return figures;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<RunFigures> scaled_figures(const std::filesystem::path& run, const Cell& cell,
                                         const EpochSize& epoch, const StepPlan& plan) {
  return figures_of(run, [&](const Lines& lines) { return scaled_from(lines, cell, epoch, plan); });
}

std::optional<RunFigures> measured_figures(const std::filesystem::path& run) {
  return figures_of(run, measured_from);
}

namespace {

/// The median of what is known.
std::optional<double> median_known(const std::vector<RunFigures>& runs,
                                   std::optional<double> RunFigures::*member) {
  std::vector<double> values;
  for (const RunFigures& run : runs) {
    if (run.*member) values.push_back(*(run.*member));
  }
  return values.empty() ? std::nullopt : std::optional(median(std::move(values)));
}

/// The median where repeats that did not reach it take longer than any that did.
std::optional<double> median_to_target(const std::vector<RunFigures>& runs) {
  std::vector<double> reached;
  for (const RunFigures& run : runs) {
    if (run.seconds_to_target) reached.push_back(*run.seconds_to_target);
  }
  if (reached.size() <= runs.size() / 2) return std::nullopt;
  std::ranges::sort(reached);
  return median({reached[(runs.size() - 1) / 2], reached[runs.size() / 2]});
}

/// Limits: what a disturbance took away in one repeat was there in another.
std::optional<double> most_known(const std::vector<RunFigures>& runs,
                                 std::optional<double> RunFigures::*member) {
  std::optional<double> most;
  for (const RunFigures& run : runs) most = std::max(most, run.*member);
  return most;
}

/// The mean of the repeats' budgets, fitted to the cell's seconds.
std::optional<Budget> budget_of(const std::vector<RunFigures>& runs, double seconds) {
  Budget sum;
  double of = 0;
  for (const RunFigures& run : runs) {
    if (!run.budget) continue;
    sum += *run.budget;
    of += run.seconds_per_epoch;
  }
  return of > 0 ? std::optional(sum * (seconds / of)) : std::nullopt;
}

}  // namespace

void combine(Cell& cell, const std::vector<RunFigures>& runs, double images_per_epoch,
             double flops_per_image) {
  cell.repeats.clear();
  for (const RunFigures& run : runs) cell.repeats.push_back(run.seconds_per_epoch);
  const auto [least, most] = std::ranges::minmax(cell.repeats);
  const double seconds = median(cell.repeats);
  cell.seconds_per_epoch = seconds;
  cell.spread = CellSpread{least, most};
  cell.steps = std::ranges::min(runs, {}, &RunFigures::steps).steps;
  cell.images_per_second = images_per_epoch / seconds;
  cell.gflops = *cell.images_per_second * flops_per_image / 1e9;
  cell.budget = budget_of(runs, seconds);
  cell.fma_gflops = most_known(runs, &RunFigures::fma_gflops);
  cell.triad_gbs = most_known(runs, &RunFigures::triad_gbs);
  cell.stolen = median_known(runs, &RunFigures::stolen);
  cell.final_loss = median_known(runs, &RunFigures::loss);
  cell.final_accuracy = median_known(runs, &RunFigures::accuracy);
  cell.val_accuracy = median_known(runs, &RunFigures::val_accuracy);
  cell.includes_warm_up = std::ranges::any_of(runs, &RunFigures::includes_warm_up);
  if (std::ranges::any_of(runs, &RunFigures::had_target)) {
    cell.reached_target = static_cast<int>(std::ranges::count_if(
        runs, [](const RunFigures& run) { return run.seconds_to_target.has_value(); }));
  }
  cell.seconds_to_target = median_to_target(runs);
}

}  // namespace cputrain
