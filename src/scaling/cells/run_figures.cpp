#include "scaling/cells/run_figures.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/json_fields.h"
#include "core/json_text.h"
#include "core/statistics/statistics.h"
#include "training/run/lost_seconds.h"

namespace cputrain::cells {
namespace {

using nlohmann::json;

/// Steps and what they took; `budget` adds up to `seconds`.
struct Part {
  std::int64_t steps;
  double seconds;
  Budget budget;
};

struct StepLine {
  double images, seconds;
  bool settled;
};

struct EpochLine {
  Part all, settled;
  std::optional<double> stolen, cpu_wait;
};

/// The lines of metrics.jsonl by what they are of.
struct Lines {
  std::vector<StepLine> steps;
  std::vector<EpochLine> epochs;
  json summary;
};

Budget budget_of(const json& object) {
  Budget budget;
  for (const BudgetPart& part : kBudgetParts) budget.*part.seconds = object.at(part.name);
  return budget;
}

Part part_of(const json& line) {
  const json& steps = line.at("steps");
  if (!steps.is_number_integer() || steps < 0 || steps > std::numeric_limits<int>::max()) {
    throw std::runtime_error("steps");
  }
  return {steps, line.at("seconds"), budget_of(line.at("budget"))};
}

StepLine step_of(const json& line) {
  const bool settled = line.at("step") > 1 && !line.contains("trying") && !line.contains("skipped");
  return {line.at("images"), line.at("seconds"), settled};
}

EpochLine epoch_of(const json& line) {
  return {part_of(line), part_of(line.at("settled")), number_in(line, "stolen", 0, 1),
          number_in(line, "cpu_wait", 0, 1)};
}

enum class Wanted { epochs, steps_too };

std::optional<Lines> lines_of(const std::filesystem::path& run, Wanted wanted) {
  Lines lines;
  system::BoundedLines file(run / "metrics.jsonl", training::kMetricsLimits);
  while (const auto text = file.next()) {
    json line = parse_strict_json(*text);
    const std::string type = line.at("type");
    if (type == "step" && wanted == Wanted::steps_too)
      lines.steps.push_back(step_of(line));
    else if (type == "epoch")
      lines.epochs.push_back(epoch_of(line));
    else if (type == "summary")
      lines.summary = std::move(line);
  }
  // Written last, when the training has come to its end.
  if (!lines.summary.is_object() || lines.summary.at("outcome") != "finished") return std::nullopt;
  return lines;
}

/// Its budget as parts of `seconds`.
std::optional<Budget> budget_of(const Part& part, double seconds) {
  if (!(part.seconds > 0)) return std::nullopt;
  return part.budget * (seconds / part.seconds);
}

/// The figure of a summary or of limits.json; nothing where no table can hold it.
void read_figure(const json& object, const char* key, const char* name, RunFigures& figures) {
  for (const CellFigure& figure : kCellFigures) {
    if (figure.name == std::string_view(name)) {
      figures.*figure.member = number_in(object, key, figure.least, figure.most);
    }
  }
}

/// Whether a loss of the summary was not finite: an accuracy beside it means nothing.
bool was_lost(const json& summary, const char* loss) {
  return summary.contains(loss) && !summary.at(loss).is_number();
}

/// What the training came to.
void read_results(const json& summary, RunFigures& figures) {
  read_figure(summary, "loss", "final_loss", figures);
  if (!was_lost(summary, "loss")) read_figure(summary, "accuracy", "final_accuracy", figures);
  figures.had_target = summary.contains("time_to_accuracy");
  if (was_lost(summary, "val_loss")) return;
  read_figure(summary, "val_accuracy", "val_accuracy", figures);
  if (figures.had_target && summary.at("time_to_accuracy").is_object()) {
    figures.seconds_to_target =
        number_in(summary.at("time_to_accuracy"), "seconds", 0, kMostCellSeconds);
  }
}

void read_limits(const std::filesystem::path& run, RunFigures& figures) {
  constexpr std::uintmax_t kMostLimitsBytes = 1 << 20;
  const auto file = run / "limits.json";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return;
  const json limits = parse_strict_json(system::read_bounded(file, kMostLimitsBytes));
  for (const char* key : {"fma_gflops", "triad_gbs"}) read_figure(limits, key, key, figures);
}

/// Seconds of the whole steps that are settled.
std::vector<double> settled_seconds(const Lines& lines, std::size_t images) {
  std::vector<double> seconds;
  for (const StepLine& step : lines.steps) {
    if (step.settled && step.images == static_cast<double>(images)) seconds.push_back(step.seconds);
  }
  return seconds;
}

/// No step but the first, which is never settled, tried algorithms.
bool is_settled(const EpochLine& epoch) { return epoch.settled.steps >= epoch.all.steps - 1; }

std::int64_t steps_of(const Lines& lines) {
  std::int64_t steps = 0;
  for (const EpochLine& epoch : lines.epochs) steps += epoch.all.steps;
  return steps;
}

struct MeasuredEpochs {
  std::vector<const EpochLine*> lines;
  bool includes_warm_up;
};

/// The settled ones, where there are any.
MeasuredEpochs whole_epochs(const Lines& lines) {
  std::vector<const EpochLine*> all, settled;
  for (const EpochLine& epoch : lines.epochs) {
    all.push_back(&epoch);
    if (all.size() > 1 && is_settled(epoch)) settled.push_back(&epoch);
  }
  if (all.size() > 1) all.erase(all.begin());
  const bool none = settled.empty();
  return {none ? std::move(all) : std::move(settled), none};
}

/// The median of what epochs lost, where all of them say.
std::optional<double> lost_of(const std::vector<const EpochLine*>& epochs,
                              std::optional<double> EpochLine::*lost) {
  std::vector<double> parts;
  for (const EpochLine* epoch : epochs) {
    if (!(epoch->*lost)) return std::nullopt;
    parts.push_back(*(epoch->*lost));
  }
  return parts.empty() ? std::nullopt : std::optional(median(std::move(parts)));
}

RunFigures scaled_from(const Lines& lines, const Cell& cell, const EpochSize& epoch,
                       const StepPlan& plan) {
  std::vector<double> seconds = settled_seconds(lines, epoch.images_of_step(cell.batch));
  if (seconds.empty()) return {};
  const auto wanted = static_cast<std::size_t>(plan.measured);
  if (seconds.size() > wanted) {
    seconds.erase(seconds.begin(), seconds.end() - static_cast<std::ptrdiff_t>(wanted));
  }
  RunFigures figures;
  figures.steps = static_cast<std::int64_t>(seconds.size());
  figures.step_seconds = median(std::move(seconds));
  figures.seconds_per_epoch = figures.step_seconds * epoch.steps(cell.batch);
  // Those of the epoch with the most settled steps.
  const EpochLine& most = *std::ranges::max_element(
      lines.epochs, {}, [](const EpochLine& line) { return line.settled.steps; });
  figures.budget =
      budget_of(most.settled.steps > 0 ? most.settled : most.all, *figures.seconds_per_epoch);
  figures.stolen = most.stolen;
  figures.cpu_wait = most.cpu_wait;
  return figures;
}

RunFigures measured_from(const Lines& lines) {
  const auto measured = whole_epochs(lines);
  std::vector<double> seconds;
  for (const EpochLine* epoch : measured.lines) seconds.push_back(epoch->all.seconds);
  RunFigures figures;
  figures.includes_warm_up = measured.includes_warm_up;
  figures.steps = steps_of(lines) / static_cast<std::int64_t>(lines.epochs.size());
  figures.seconds_per_epoch = median(std::move(seconds));
  figures.step_seconds =
      *figures.seconds_per_epoch / static_cast<double>(std::max<std::int64_t>(figures.steps, 1));
  figures.budget = budget_of(lines.epochs.back().all, *figures.seconds_per_epoch);
  figures.stolen = lost_of(measured.lines, &EpochLine::stolen);
  figures.cpu_wait = lost_of(measured.lines, &EpochLine::cpu_wait);
  read_results(lines.summary, figures);
  return figures;
}

/// Nothing where the run is not whole or its files are not what a training writes.
std::optional<RunFigures> figures_of(const std::filesystem::path& run, Wanted wanted,
                                     const std::function<RunFigures(const Lines&)>& read) {
  try {
    const std::optional<Lines> lines = lines_of(run, wanted);
    if (!lines || lines->epochs.empty()) return std::nullopt;
    const RunDevices devices = devices_of_run(run);
    if (devices.emulated) return std::nullopt;
    RunFigures figures = read(*lines);
    const double seconds = figures.seconds_per_epoch.value_or(0);
    if (!(seconds >= kLeastCellSeconds && seconds <= kMostCellSeconds)) return std::nullopt;
    for (const char* key : {"peak_rank_bytes", "peak_node_bytes", "peak_device_bytes"}) {
      read_figure(lines->summary, key, key, figures);
    }
    read_limits(run, figures);
    figures.run_devices = devices;
    return figures;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// What repeats say of a figure together; nothing where none knows it.
std::optional<double> combined(const std::vector<RunFigures>& runs, const CellFigure& figure) {
  std::vector<double> values;
  for (const RunFigures& run : runs) {
    if (run.*figure.member) values.push_back(*(run.*figure.member));
  }
  if (values.empty()) return std::nullopt;
  if (figure.combined == CellFigure::Combined::most) return std::ranges::max(values);
  return median(std::move(values));
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

/// The mean of the repeats' budgets, fitted to the cell's seconds.
std::optional<Budget> budget_of(const std::vector<RunFigures>& runs, double seconds) {
  Budget sum;
  double of = 0;
  for (const RunFigures& run : runs) {
    if (!run.budget) continue;
    sum += *run.budget;
    of += *run.seconds_per_epoch;
  }
  if (!(of > 0)) return std::nullopt;
  const Budget budget = sum * (seconds / of);
  const bool fits = std::ranges::all_of(kBudgetParts, [&](const BudgetPart& part) {
    return std::abs(budget.*part.seconds) <= kMostCellSeconds;
  });
  return fits ? std::optional(budget) : std::nullopt;
}

/// Nothing where no table can hold it.
std::optional<double> rate(double value) {
  return value <= kMostCellRate ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<RunFigures> scaled_figures(const std::filesystem::path& run, const Cell& cell,
                                         const EpochSize& epoch, const StepPlan& plan) {
  return figures_of(run, Wanted::steps_too,
                    [&](const Lines& lines) { return scaled_from(lines, cell, epoch, plan); });
}

std::optional<std::int64_t> unsettled_steps(const std::filesystem::path& run, const Cell& cell,
                                            const EpochSize& epoch) {
  try {
    const std::optional<Lines> lines = lines_of(run, Wanted::steps_too);
    if (!lines || !settled_seconds(*lines, epoch.images_of_step(cell.batch)).empty()) return {};
    return steps_of(*lines);
  } catch (const std::exception&) {
    return {};
  }
}

std::optional<RunFigures> measured_figures(const std::filesystem::path& run) {
  return figures_of(run, Wanted::epochs, measured_from);
}

void combine(Cell& cell, const std::vector<RunFigures>& runs, double images_per_epoch,
             double flops_per_image) {
  cell.repeats.clear();
  for (const RunFigures& run : runs) cell.repeats.push_back(*run.seconds_per_epoch);
  const auto [least, most] = std::ranges::minmax(cell.repeats);
  const double seconds = median(cell.repeats);
  cell.seconds_per_epoch = seconds;
  cell.spread = CellSpread{least, most};
  cell.steps = std::ranges::min(runs, {}, &Cell::steps).steps;
  cell.budget = budget_of(runs, seconds);
  std::vector<RunDevices> devices;
  for (const RunFigures& run : runs) devices.push_back(run.run_devices);
  combine_devices(cell, devices);
  for (const CellFigure& figure : kCellFigures) cell.*figure.member = combined(runs, figure);
  cell.images_per_second = rate(images_per_epoch / seconds);
  cell.gflops = rate(images_per_epoch / seconds * flops_per_image / 1e9);
  cell.includes_warm_up = std::ranges::any_of(runs, &Cell::includes_warm_up);
  if (std::ranges::any_of(runs, &RunFigures::had_target)) {
    cell.reached_target = static_cast<int>(std::ranges::count_if(
        runs, [](const RunFigures& run) { return run.seconds_to_target.has_value(); }));
  }
  cell.seconds_to_target = median_to_target(runs);
}

}  // namespace cputrain::cells
