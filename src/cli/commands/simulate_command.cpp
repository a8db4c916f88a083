#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cells/explanation.h"
#include "cells/plan.h"
#include "cli/commands.h"
#include "cli/flags/simulate_flags.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/shell_words.h"
#include "core/spread.h"
#include "core/text.h"
#include "core/version.h"
#include "job/spec/build_graph.h"
#include "simulation/forecast.h"
#include "simulation/simulated_costs.h"
#include "sweep/grid_limits.h"
#include "system/clock.h"
#include "system/files.h"
#include "system/print.h"
#include "system/tell.h"

namespace cputrain::cli {
namespace {

constexpr const char* kPlatform = "skylake-96";

/// A folder for the simulator's files that is gone in the end.
class WorkFolder {
 public:
  WorkFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "cputrain-XXXXXX").string();
    if (!mkdtemp(name.data())) {
      fail(ExitCode::output, "cannot make a folder " + name +
                                 " (the simulator's files lie there); free space in it or set "
                                 "TMPDIR");
    }
    path_ = name;
  }
  ~WorkFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Puts what the flags change into the platform.
void change(simulation::Platform& platform, const simulation::SimulationRequest& request) {
  if (request.clock_ghz) {
    if (!platform.cpu) {
      fail(
          ExitCode::usage,
          fmt::format("--clock-ghz with --platform {}, whose cores are as measured (their clock is "
                      "not known); name another platform",
                      platform.name));
    }
    platform.cpu->clock = {{1, *request.clock_ghz}};
  }
  if (request.memory_gb) platform.set_memory(*request.memory_gb);
  if (request.memory_gbs) {
    platform.node_gbs = *request.memory_gbs;
    platform.core_gbs = std::min(platform.core_gbs, platform.node_gbs);
  }
  if (request.network_gbps) {
    if (platform.nodes == 1) {
      fail(ExitCode::usage, fmt::format("--network-gbps with --platform {}, which is one machine; "
                                        "name a cluster",
                                        platform.name));
    }
    platform.network_gbps = *request.network_gbps;
  }
}

/// With what the flags change. Before costs are measured `here` is the machine's cores alone.
simulation::Platform choose_platform(const Config& config, const job::Services& services,
                                     const simulation::CostTable* costs) {
  const std::string& asked = config.simulation.platform;
  const std::string name = asked.empty() ? kPlatform : asked;
  simulation::Platform platform;
  if (costs || name != simulation::kHere) {
    platform = simulation::find_platform(name, costs ? *costs : simulation::CostTable{});
  } else {
    const placement::Machine machine = services.machine();
    platform.name = name;
    platform.cores = std::max(1, machine.allowed_cores);
    platform.threads_per_core =
        std::max(1, static_cast<int>(machine.allowed_cpus.size()) / platform.cores);
  }
  change(platform, config.simulation);
  return platform;
}

cells::SweepCells planned_cells(const simulation::SimulationRequest& request,
                                const simulation::Platform& platform) {
  cells::SweepGrid grid{.cpus = request.cpus,
                        .threads = request.threads,
                        .batches = request.batches,
                        .batches_per_rank = request.batches_per_rank,
                        .backends = {"cpu"}};
  if (grid.threads.empty()) grid.threads = {1};
  const int all = std::min(platform.most_ranks(), sweep::kMostColumn);
  for (int n = 1; request.cpus.empty() && n < all; n *= 2) grid.cpus.push_back(n);
  if (request.cpus.empty()) grid.cpus.push_back(all);
  if (grid.batches.empty() && grid.batches_per_rank.empty()) grid.batches = {128, 256, 512, 1024};
  sweep::check_size(grid);
  cells::SweepCells planned = cells::cells_of(grid);
  if (planned.cells.empty()) {
    fail(ExitCode::usage, fmt::format("--np, --threads: {}", planned.left_out.front()));
  }
  sweep::check_limits(planned.cells, grid);
  return planned;
}

/// "./cputrain simulate --np 1,2 ...", for the record; without the flags named.
std::vector<std::string> words_of(const Config& config, const std::set<std::string>& without) {
  std::vector<std::string> words{"./cputrain", "simulate"};
  for (const auto& [name, value] : config.given) {
    if (without.contains(name)) continue;
    words.push_back("--" + name);
    if (!value.empty()) words.push_back(value);
  }
  return words;
}

std::string command_of(const Config& config, const cells::Cell& cell) {
  std::vector<std::string> words = words_of(config, {"np", "threads", "batch", "batch-size",
                                                     "batch-per-rank", "json", "out", "overwrite"});
  const bool weak = cell.batch_per_rank.has_value();
  const std::size_t images = weak ? static_cast<std::size_t>(*cell.batch_per_rank) : cell.batch;
  for (const auto& [flag, value] :
       {std::pair{"--np", std::to_string(cell.cpus)},
        std::pair{"--threads", std::to_string(cell.threads)},
        std::pair{weak ? "--batch-per-rank" : "--batch", std::to_string(images)}}) {
    words.emplace_back(flag);
    words.push_back(value);
  }
  return command_line(words);
}

/// What makes another experiment of a table with the same platform and model.
std::map<std::string, std::string> options_of(const Config& config,
                                              const simulation::CostTable& costs) {
  std::set<std::string> names{"clock-ghz", "memory-gbs", "network-gbps", "platform-memory"};
  names.insert(kOfTraining.begin(), kOfTraining.end());
  // Times of other kernels are of another experiment, too.
  std::map<std::string, std::string> options{
      {"costs", costs.cpu + (costs.kernels.empty() ? "" : ", " + costs.kernels)}};
  for (const auto& [name, value] : config.given) {
    if (names.contains(name) && name != "model" && name != "image-size") options[name] = value;
  }
  return options;
}

cells::CellTable empty_table(const Config& config, const job::TrainingSpec& spec,
                             const model::Graph& graph, std::size_t images,
                             const std::string& platform) {
  cells::CellTable table;
  table.model = spec.model->name;
  table.image_size = spec.image.height;
  table.images_per_epoch = images;
  table.parameters = static_cast<double>(graph.parameter_count());
  for (int i = 1; i < static_cast<int>(graph.nodes().size()); ++i) {
    table.macs_per_image +=
        model::macs(graph.nodes()[static_cast<std::size_t>(i)].layer, graph.src_shape(i));
  }
  table.data = config.data_or_synthetic();
  table.seed = spec.seed;
  table.machine.platform = platform;
  table.machine.build = std::string("cputrain ") + std::string(kVersion);
  table.date = cells::today();
  table.command = command_line(words_of(config, {"json", "out", "overwrite"}));
  return table;
}

void print_table(const cells::CellTable& table) {
  system::print("{:>6}{:>8}{:>8}{:>14}{:>22}{:>12}  {}\n", "CPUs", "threads", "batch", "s/epoch",
                "spread", "images/s", "limit");
  for (const cells::Cell& cell : table.cells) {
    if (!cell.seconds_per_epoch) {
      system::print("{:>6}{:>8}{:>8}{:>14}  {}\n", cell.cpus, cell.threads, cell.batch, "n/a",
                    cell.reason);
      continue;
    }
    system::print("{:>6}{:>8}{:>8}{:>14.2f}{:>22}{:>12.1f}  {}: {}\n", cell.cpus, cell.threads,
                  cell.batch, *cell.seconds_per_epoch,
                  fmt::format("{:.2f} to {:.2f}", cell.spread->min, cell.spread->max),
                  cell.images_per_second.value_or(0), cell.limits.what, cell.limits.why);
  }
  system::print(
      "Simulated ({}): costs of layers measured on one machine ({}), machines and network as in "
      "the "
      "platform file. {}\n",
      table.machine.platform, table.costs.empty() ? "none" : table.costs, cells::kSimulatedRange);
}

/// What can be forecast gets its figures, the others their reason.
void simulate(const Config& config, system::SignalWatch& signals,
              const simulation::Simulator& simulator, const simulation::Forecast& forecast,
              std::size_t validation_images, cells::CellTable& table) {
  std::vector<simulation::SimulationJob> todo;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < table.cells.size(); ++i) {
    cells::Cell& cell = table.cells[i];
    cell.reason = forecast.obstacle(cell);
    if (!cell.reason.empty()) continue;
    simulation::SimulationJob job = forecast.job(cell, flags_of_training(config));
    job.steps = static_cast<int>(config.steps.value_or(2));
    job.repeats = config.repeat.value_or(3);
    job.seed = config.seed.value_or(0);
    job.validation_images = validation_images;
    todo.push_back(std::move(job));
    places.push_back(i);
  }
  const WorkFolder folder;
  constexpr int kAtOnce = 2;
  std::size_t done = 0;
  system::Stopwatch watch;
  const auto say_progress = [&](std::size_t) {
    constexpr double kSeconds = 5;
    if (++done < todo.size() && watch.seconds() < kSeconds) return;
    system::tell(fmt::format("{} of {} cells simulated", done, todo.size()));
    watch = {};
  };
  const auto stopped = [&] { return signals.stop_requested(); };
  const auto results =
      simulation::run_cells(simulator, folder.path(), todo, kAtOnce, {say_progress, stopped});
  std::vector<simulation::CellWork> work(table.cells.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    cells::Cell& cell = table.cells[places[i]];
    forecast.fill(cell, results[i]);
    work[places[i]] = results[i].work;
    cell.command = command_of(config, cell);
  }
  simulation::explain_above_linear(table.cells, work, forecast.costs());
}

void write_folder(const Config& config, const cells::CellTable& table,
                  const simulation::Forecast& forecast) {
  if (config.out.empty()) return;
  const std::filesystem::path folder = config.out;
  system::make_folder(folder);
  cells::write_cells(folder / cells::kCellsName, table);
  system::write_own_file(folder / "costs.json",
                         json_text(simulation::to_json(forecast.costs()), 1) + "\n");
  system::write_own_file(folder / "platform.json",
                         json_text(simulation::to_json(forecast.platform()), 2) + "\n");
}

bool holds_a_table(const Config& config) {
  return !config.out.empty() &&
         std::filesystem::exists(std::filesystem::path(config.out) / cells::kCellsName);
}

void check_out_folder(const Config& config) {
  if (config.overwrite || !holds_a_table(config)) return;
  fail(ExitCode::usage, fmt::format("--out {}: holds a table already (it would be replaced); name "
                                    "another folder, or add --overwrite",
                                    config.out));
}

void say_result(const Config& config, const cells::CellTable& table) {
  if (config.json != "-") print_table(table);
  if (config.json.empty()) return;
  const std::string text = json_text(cells::to_json(table), 1) + "\n";
  if (config.json == "-") {
    system::print_lines(text);
  } else {
    system::write_given_file(config.json, text);
  }
}

/// The table of a program without its simulator.
void say_missing(const Config& config, const std::string& why, cells::CellTable& table) {
  for (cells::Cell& cell : table.cells) cell.reason = why;
  if (!config.out.empty() && !holds_a_table(config)) {
    system::make_folder(config.out);
    cells::write_cells(std::filesystem::path(config.out) / cells::kCellsName, table);
  }
  say_result(config, table);
}

}  // namespace

int run_simulate(const Config& config, const job::Services& services,
                 const simulation::Simulator& simulator) {
  check_out_folder(config);
  const job::TrainingSpec spec = job::choose_training(config);
  const data::DataSource source = services.data.open(config.data_request(spec.seed));
  const int classes = job::classes_of(spec, source);
  const model::Graph graph = job::build_graph(spec, classes);
  const bool here = config.simulation.platform == simulation::kHere;
  // Mistakes in platform and grid show before minutes of measuring.
  simulation::Platform platform = choose_platform(config, services, nullptr);
  cells::SweepCells planned = planned_cells(config.simulation, platform);
  cells::CellTable table = empty_table(config, spec, graph, source.train.size(), platform.name);
  if (!simulator.missing.empty()) {
    table.cells = std::move(planned.cells);
    say_missing(config, simulator.missing, table);
    return static_cast<int>(ExitCode::ok);
  }
  const simulation::CostTable costs =
      simulation::costs_of(config.simulation, services, spec, graph, here);
  if (here) {  // which --costs may have from another machine
    platform = choose_platform(config, services, &costs);
    planned = planned_cells(config.simulation, platform);
  }
  for (const std::string& reason : planned.left_out) system::tell("Left out: " + reason);
  table.cells = std::move(planned.cells);
  const simulation::Forecast forecast(std::move(platform), costs, graph, classes,
                                      source.train.size());
  table.options = options_of(config, costs);
  table.machine = forecast.machine();
  table.machine.build = std::string("cputrain ") + std::string(kVersion);
  table.commit = services.program_build;
  table.costs = costs.origin();
  const auto armed = services.signals->arm();
  simulate(config, *services.signals, simulator, forecast, source.validation.size(), table);
  const bool stopped = services.signals->stop_requested();
  if (!stopped || !holds_a_table(config)) write_folder(config, table, forecast);
  say_result(config, table);
  if (!stopped) return static_cast<int>(ExitCode::ok);
  system::tell(
      "cputrain: stopped; what was finished is told, and the same command begins anew (with "
      "--overwrite where --out holds a table)");
  return services.signals->stop_code();
}

}  // namespace cputrain::cli
