#include "scaling/cells/run_figures.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/statistics/median.h"
#include "core/strict_json.h"
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

/// Nothing where it is missing, no number, or none that a table can hold.
std::optional<double> known(const json& object, const char* key, double least, double most) {
  if (!object.contains(key) || !object.at(key).is_number()) return std::nullopt;
  const double value = object.at(key);
  return value >= least && value <= most ? std::optional(value) : std::nullopt;
}

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
  return {part_of(line), part_of(line.at("settled")), known(line, "stolen", 0, 1),
          known(line, "cpu_wait", 0, 1)};
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

/// Nothing beside a loss that was no number: earlier versions counted such answers as class 0.
std::optional<double> accuracy_of(const json& line, const char* accuracy, const char* loss) {
  if (line.contains(loss) && !line.at(loss).is_number()) return std::nullopt;
  return known(line, accuracy, 0, 1);
}

/// What the training came to.
void read_results(const Lines& lines, RunFigures& figures) {
  figures.loss = known(lines.summary, "loss", -kMostCellLoss, kMostCellLoss);
  figures.accuracy = accuracy_of(lines.summary, "accuracy", "loss");
  figures.val_accuracy = accuracy_of(lines.summary, "val_accuracy", "val_loss");
  const bool answers =
      !lines.summary.contains("val_loss") || lines.summary.at("val_loss").is_number();
  figures.had_target = lines.summary.contains("time_to_accuracy");
  if (figures.had_target && answers && lines.summary.at("time_to_accuracy").is_object()) {
    figures.seconds_to_target =
        known(lines.summary.at("time_to_accuracy"), "seconds", 0, kMostCellSeconds);
  }
}

void read_memory(const Lines& lines, RunFigures& figures) {
  const auto bytes = [&](const char* key) { return known(lines.summary, key, 0, kMostCellBytes); };
  figures.peak_rank_bytes = bytes("peak_rank_bytes");
  figures.peak_node_bytes = bytes("peak_node_bytes");
  figures.peak_device_bytes = bytes("peak_device_bytes");
}

void read_limits(const std::filesystem::path& run, RunFigures& figures) {
  constexpr std::uintmax_t kMostLimitsBytes = 1 << 20;
  const auto file = run / "limits.json";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return;
  const json limits = parse_strict_json(system::read_bounded(file, kMostLimitsBytes));
  figures.fma_gflops = known(limits, "fma_gflops", 0, kMostCellRate);
  figures.triad_gbs = known(limits, "triad_gbs", 0, kMostCellRate);
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
  figures.steps = static_cast<int>(seconds.size());
  figures.step_seconds = median(std::move(seconds));
  figures.seconds_per_epoch = figures.step_seconds * epoch.steps(cell.batch);
  // Of the epoch with the most settled steps.
  const EpochLine& most = *std::ranges::max_element(
      lines.epochs, {}, [](const EpochLine& line) { return line.settled.steps; });
  figures.budget =
      budget_of(most.settled.steps > 0 ? most.settled : most.all, figures.seconds_per_epoch);
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
  figures.steps =
      static_cast<int>(steps_of(lines) / static_cast<std::int64_t>(lines.epochs.size()));
  figures.seconds_per_epoch = median(std::move(seconds));
  figures.step_seconds = figures.seconds_per_epoch / std::max(figures.steps, 1);
  figures.budget = budget_of(lines.epochs.back().all, figures.seconds_per_epoch);
  figures.stolen = lost_of(measured.lines, &EpochLine::stolen);
  figures.cpu_wait = lost_of(measured.lines, &EpochLine::cpu_wait);
  read_results(lines, figures);
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
    if (!(figures.seconds_per_epoch >= kLeastCellSeconds &&
          figures.seconds_per_epoch <= kMostCellSeconds)) {
      return std::nullopt;
    }
    read_memory(*lines, figures);
    read_limits(run, figures);
    figures.devices = devices;
    return figures;
  } catch (const std::exception&) {
    return std::nullopt;
  }
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

void combine(Cell& cell, const std::vector<RunFigures>& runs, double images_per_epoch,
             double flops_per_image) {
  cell.repeats.clear();
  for (const RunFigures& run : runs) cell.repeats.push_back(run.seconds_per_epoch);
  const auto [least, most] = std::ranges::minmax(cell.repeats);
  const double seconds = median(cell.repeats);
  cell.seconds_per_epoch = seconds;
  cell.spread = CellSpread{least, most};
  cell.steps = std::ranges::min(runs, {}, &RunFigures::steps).steps;
  cell.images_per_second = rate(images_per_epoch / seconds);
  cell.gflops = rate(images_per_epoch / seconds * flops_per_image / 1e9);
  cell.budget = budget_of(runs, seconds);
  std::vector<RunDevices> devices;
  for (const RunFigures& run : runs) devices.push_back(run.devices);
  combine_devices(cell, devices);
  cell.fma_gflops = most_known(runs, &RunFigures::fma_gflops);
  cell.triad_gbs = most_known(runs, &RunFigures::triad_gbs);
  cell.stolen = median_known(runs, &RunFigures::stolen);
  cell.cpu_wait = median_known(runs, &RunFigures::cpu_wait);
  cell.peak_rank_bytes = most_known(runs, &RunFigures::peak_rank_bytes);
  cell.peak_node_bytes = most_known(runs, &RunFigures::peak_node_bytes);
  cell.peak_device_bytes = most_known(runs, &RunFigures::peak_device_bytes);
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

}  // namespace cputrain::cells
