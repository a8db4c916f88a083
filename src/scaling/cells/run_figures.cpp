#include "scaling/cells/run_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "core/json_fields.h"
#include "core/json_text.h"
#include "core/text.h"
#include "runfiles/description.h"
#include "runfiles/metrics.h"
#include "system/bounded_file.h"
#include "training/request/flag_grammars.h"

namespace cputrain::cells {
namespace {

/// Leaves out what no table can hold.
void read_gpus(const nlohmann::json& gpus, RunDevices& devices) {
  constexpr int kMostDevices = 1 << 24;
  constexpr std::size_t kLongestName = 1 << 10;
  const auto count = gpus.at("count").get<std::int64_t>();
  if (count >= 1 && count <= kMostDevices) devices.count = static_cast<int>(count);
  const auto& name = gpus.at("name").get_ref<const std::string&>();
  if (name.size() <= kLongestName) devices.name = name;
}

placement::CpuId cpu_id_of(const JsonFields& machine) {
  placement::CpuId id;
  JsonMembers members(machine);
  placement::describe_cpu_id(members, id);
  return id;
}

using nlohmann::json;

using runfiles::EpochLine;
using runfiles::Metrics;

/// Nothing where the training did not come to its end, or the file is not what a training writes.
std::optional<Metrics> metrics_of(const std::filesystem::path& run, bool with_steps) {
  const auto read = with_steps ? runfiles::read_metrics_and_steps : runfiles::read_metrics;
  Metrics metrics = read(run / runfiles::kMetricsName);
  const bool finished = metrics.summary && !metrics.summary->interrupted;
  return finished && metrics.troubles.empty() ? std::optional(std::move(metrics)) : std::nullopt;
}

/// A budget of `of` as parts of `seconds`.
std::optional<Budget> budget_of(const std::optional<Budget>& budget, double of, double seconds) {
  if (!budget || !(of > 0)) return std::nullopt;
  return *budget * (seconds / of);
}

/// A figure; nothing where no table can hold it.
void take_figure(std::optional<double> value, const char* name, RunFigures& figures) {
  for (const CellFigure& figure : kCellFigures) {
    if (figure.name != std::string_view(name)) continue;
    const bool fits = value && *value >= figure.least && *value <= figure.most;
    figures.*figure.member = fits ? value : std::nullopt;
  }
}

/// Accuracies beside a loss that is not finite mean nothing.
void take_results(const runfiles::SummaryLine& summary, RunFigures& figures) {
  const auto loss_of = [](const auto& of) { return of ? of->finite_loss() : std::nullopt; };
  const auto &train = summary.train, &validation = summary.validation;
  take_figure(loss_of(train), "final_loss", figures);
  if (loss_of(train)) take_figure(train->accuracy, "final_accuracy", figures);
  figures.had_target = summary.target_accuracy || summary.reached;
  if (validation && !validation->finite_loss()) return;
  if (validation) take_figure(validation->accuracy, "val_accuracy", figures);
  if (summary.reached && summary.reached->seconds <= kMostCellSeconds) {
    figures.seconds_to_target = summary.reached->seconds;
  }
}

void read_limits(const std::filesystem::path& run, RunFigures& figures) {
  constexpr std::uintmax_t kMostLimitsBytes = 1 << 20;
  const auto file = run / "limits.json";
  if (!system::is_present(file)) return;
  const json limits = parse_strict_json(system::read_bounded(file, kMostLimitsBytes));
  for (const char* key : {"fma_gflops", "triad_gbs"}) {
    take_figure(number_in(limits, key, -kMostCellRate, kMostCellRate), key, figures);
  }
}

/// Seconds of the whole steps in which no algorithms were tried, nor memory touched first.
std::vector<double> settled_seconds(const Metrics& metrics, std::size_t images) {
  std::vector<double> seconds;
  for (const runfiles::StepLine& step : metrics.steps) {
    const bool settled = step.step > 1 && !step.trying && !step.skipped;
    if (settled && step.seconds && step.images == images) seconds.push_back(*step.seconds);
  }
  return seconds;
}

std::int64_t steps_of(const Metrics& metrics) {
  std::int64_t steps = 0;
  for (const EpochLine& epoch : metrics.epochs) steps += static_cast<std::int64_t>(epoch.steps);
  return steps;
}

using Epochs = std::vector<const EpochLine*>;

/// All but the first, where there are several.
Epochs later_epochs(const Metrics& metrics) {
  Epochs epochs;
  for (const EpochLine& epoch : metrics.epochs) epochs.push_back(&epoch);
  if (epochs.size() > 1) epochs.erase(epochs.begin());
  return epochs;
}

/// Those behind the first that are settled; there may be none.
Epochs settled_epochs(const Metrics& metrics) {
  if (metrics.epochs.size() < 2) return {};
  Epochs epochs = later_epochs(metrics);
  std::erase_if(epochs, [](const EpochLine* epoch) { return !epoch->is_settled(); });
  return epochs;
}

/// The median of what epochs lost, where all of them say.
std::optional<double> lost_of(const Epochs& epochs, std::optional<double> TakenTime::*lost) {
  std::vector<double> parts;
  for (const EpochLine* epoch : epochs) {
    if (!(epoch->taken.*lost)) return std::nullopt;
    parts.push_back(*(epoch->taken.*lost));
  }
  return parts.empty() ? std::nullopt : std::optional(median(std::move(parts)));
}

RunFigures scaled_from(const Metrics& metrics, const Cell& cell, const EpochSize& epoch,
                       const StepPlan& plan) {
  std::vector<double> seconds = settled_seconds(metrics, epoch.images_of_step(cell.batch));
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
  const auto settled = [](const EpochLine& line) { return line.settled ? line.settled->steps : 0; };
  const EpochLine& most = *std::ranges::max_element(metrics.epochs, {}, settled);
  figures.budget =
      settled(most) > 0
          ? budget_of(most.settled->budget, most.settled->seconds, *figures.seconds_per_epoch)
          : budget_of(most.budget, most.seconds, *figures.seconds_per_epoch);
  figures.stolen = most.taken.stolen;
  figures.cpu_wait = most.taken.cpu_wait;
  return figures;
}

RunFigures measured_from(const Metrics& metrics) {
  RunFigures figures;
  Epochs epochs = settled_epochs(metrics);
  figures.includes_warm_up = epochs.empty();
  if (epochs.empty()) epochs = later_epochs(metrics);
  std::vector<double> seconds;
  for (const EpochLine* epoch : epochs) seconds.push_back(epoch->seconds);
  figures.steps = steps_of(metrics) / static_cast<std::int64_t>(metrics.epochs.size());
  figures.seconds_per_epoch = median(std::move(seconds));
  figures.step_seconds =
      *figures.seconds_per_epoch / static_cast<double>(std::max<std::int64_t>(figures.steps, 1));
  const EpochLine& last = metrics.epochs.back();
  figures.budget = budget_of(last.budget, last.seconds, *figures.seconds_per_epoch);
  figures.stolen = lost_of(epochs, &TakenTime::stolen);
  figures.cpu_wait = lost_of(epochs, &TakenTime::cpu_wait);
  take_results(*metrics.summary, figures);
  return figures;
}

/// Nothing where the run is not whole or its files are not what a training writes.
std::optional<RunFigures> figures_of(const std::filesystem::path& run, bool with_steps,
                                     const std::function<RunFigures(const Metrics&)>& read) {
  try {
    const std::optional<Metrics> metrics = metrics_of(run, with_steps);
    if (!metrics || metrics->epochs.empty()) return std::nullopt;
    const RunDevices devices = devices_of_run(run);
    if (devices.emulated) return std::nullopt;
    RunFigures figures = read(*metrics);
    const double seconds = figures.seconds_per_epoch.value_or(0);
    if (!(seconds >= kLeastCellSeconds && seconds <= kMostCellSeconds)) return std::nullopt;
    const runfiles::SummaryLine& summary = *metrics->summary;
    take_figure(summary.peak_rank_bytes, "peak_rank_bytes", figures);
    take_figure(summary.peak_node_bytes, "peak_node_bytes", figures);
    take_figure(summary.peak_device_bytes, "peak_device_bytes", figures);
    take_figure(summary.density, "density", figures);
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
  return values.empty() ? std::nullopt : std::optional(figure.combined(std::move(values)));
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

RunDevices devices_of_run(const std::filesystem::path& run) {
  RunDevices devices;
  try {
    const nlohmann::json environment = runfiles::read_environment(run);
    devices.emulated = environment.value("emulated", false);
    devices.origin.commit = text_in(environment, "build");
    devices.origin.kernels_version = whole_of<int>(environment, "kernels_version", 0, 1 << 24);
    if (environment.contains("gpus")) read_gpus(environment.at("gpus"), devices);
    if (environment.contains("machine")) {
      devices.origin.cpu_id = cpu_id_of({environment.at("machine"), "machine", kTableRemedy});
    }
  } catch (const std::exception&) {
    // It then says no more than what was read.
  }
  return devices;
}

void combine_devices(Cell& cell, const std::vector<RunDevices>& repeats) {
  cell.origin = repeats.empty() ? CellOrigin{} : repeats.front().origin;
  for (const RunDevices& devices : repeats) cell.origin = cell.origin.common(devices.origin);
  if (!training::is_device(cell.backend)) return;
  std::set<std::string> names;
  for (const RunDevices& devices : repeats) {
    if (devices.count > 0) cell.gpus = std::min(cell.gpus, devices.count);
    if (!devices.name.empty()) names.insert(devices.name);
  }
  cell.device = join(std::vector<std::string>(names.begin(), names.end()), " and ");
}

std::string devices_text(const CellTable& table) {
  std::map<std::pair<std::string, std::string>, int> most;
  for (const Cell& c : table.cells) {
    if (c.device.empty()) continue;
    int& count = most[{c.backend, c.device}];
    count = std::max(count, c.gpus);
  }
  std::vector<std::string> parts;
  for (const auto& [which, count] : most) {
    parts.push_back(fmt::format("{}: {} x {}", which.first, count, which.second));
  }
  return join(parts, "; ");
}

CellMachine software_of(std::string_view version, const std::vector<std::string>& libraries) {
  const auto mpi = std::ranges::find_if(
      libraries, [](const std::string& name) { return name.starts_with("Open MPI"); });
  return {.mpi = mpi == libraries.end() ? "" : *mpi,
          .build = fmt::format("cputrain {}; {}", version, join(libraries, ", "))};
}

std::optional<CellMachine> machine_of_run(const nlohmann::json& environment,
                                          const std::string& where) {
  constexpr int kMostCount = 1 << 24;
  constexpr std::size_t kMostLibraries = 100'000;
  constexpr std::size_t kLongestBuild = 1 << 14;  // shorter than what tables hold
  const JsonFields own(environment, where, kTableRemedy);
  if (!own.has("machine")) return std::nullopt;
  const JsonFields machine = own.object("machine");
  const auto count = [&](const char* key) { return machine.whole(key, 0, kMostCount, 0); };
  const auto libraries =
      own.has("libraries") ? own.texts("libraries", kMostLibraries) : std::vector<std::string>();
  CellMachine software = software_of(own.text("cputrain", ""), libraries);
  if (software.build.size() > kLongestBuild) own.wrong("libraries are too long a text");
  return CellMachine{.cpu = machine.text("cpu", ""),
                     .cpu_id = cpu_id_of(machine),
                     .host = machine.text("host", ""),
                     .mpi = std::move(software.mpi),
                     .build = std::move(software.build),
                     .cores = count("cores"),
                     .hardware_threads = count("hardware_threads"),
                     .memory_bytes = 1e9 * machine.real("memory_gb", 0, 1e9, 0)};
}

std::optional<RunFigures> scaled_figures(const std::filesystem::path& run, const Cell& cell,
                                         const EpochSize& epoch, const StepPlan& plan) {
  return figures_of(
      run, true, [&](const Metrics& metrics) { return scaled_from(metrics, cell, epoch, plan); });
}

std::optional<std::int64_t> unsettled_steps(const std::filesystem::path& run, const Cell& cell,
                                            const EpochSize& epoch) {
  const std::optional<Metrics> metrics = metrics_of(run, true);
  if (!metrics || !settled_seconds(*metrics, epoch.images_of_step(cell.batch)).empty()) return {};
  return steps_of(*metrics);
}

std::optional<RunFigures> measured_figures(const std::filesystem::path& run) {
  return figures_of(run, false, measured_from);
}

void combine(Cell& cell, const std::vector<RunFigures>& runs, double images_per_epoch,
             double flops_per_image) {
  cell.repeats.clear();
  for (const RunFigures& run : runs) cell.repeats.push_back(*run.seconds_per_epoch);
  const auto [least, most] = std::ranges::minmax(cell.repeats);
  const double seconds = median(cell.repeats);
  cell.seconds_per_epoch = seconds;
  cell.spread = Interval{least, most};
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
