#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "core/version.h"
#include "scaling/cells/explanation.h"
#include "scaling/commands/commands.h"
#include "scaling/simulation/calibrate.h"
#include "scaling/simulation/forecast.h"
#include "system/clock.h"
#include "system/file_system.h"
#include "system/files.h"
#include "system/print.h"
#include "system/temporary.h"
#include "training/request/flag_grammars.h"
#include "training/session/services.h"

namespace cputrain::commands {
namespace {

const std::string kBuild = "cputrain " + std::string(kVersion);

/// "./cputrain simulate --np 1,2 ...", for the record; without the flags named.
std::vector<std::string> command_words(const SimulateOptions& options,
                                       const std::set<std::string>& without) {
  std::vector<std::string> words{"./cputrain", "simulate"};
  for (const auto& [name, value] : options.given) {
    if (without.contains(name)) continue;
    words.push_back("--" + name);
    if (!value.empty()) words.push_back(value);
  }
  return words;
}

/// GPUs may need less than a hundredth of a second.
std::string seconds_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.4f}", seconds) : fmt::format("{:.2f}", seconds);
}

std::string spread_text(const cells::Cell& cell) {
  if (!cell.spread) return std::string(cells::status_name(cell.status));
  return fmt::format("{:.2f} to {:.2f}", cell.spread->low, cell.spread->high);
}

/// The last line of a table.
std::string origin_text(const cells::CellTable& table, bool gpus) {
  const std::string costs = table.costs.empty() ? "none" : table.costs;
  if (gpus) {
    return fmt::format(
        "Nothing of it was measured on such a machine ({}). Costs of one GPU: {}. Sums and images "
        "by formulas, with the figures of the platform file.",
        table.machine.platform, costs);
  }
  return fmt::format(
      "Simulated ({}): costs of layers measured on one machine ({}), machines and network as in "
      "the platform file. {}",
      table.machine.platform, costs, cells::kSimulatedRange);
}

void print_table(const cells::CellTable& table) {
  const bool gpus = !table.cells.empty() && training::is_device(table.cells.front().backend);
  system::print("{:>6}{:>8}{:>8}{:>14}{:>22}{:>12}  {}\n", gpus ? "GPUs" : "CPUs", "threads",
                "batch", "s/epoch", "spread", "images/s", "limit");
  for (const cells::Cell& cell : table.cells) {
    if (!cell.seconds_per_epoch) {
      system::print("{:>6}{:>8}{:>8}{:>14}  {}\n", cell.cpus, cell.threads, cell.batch, "n/a",
                    cell.reason);
      continue;
    }
    system::print("{:>6}{:>8}{:>8}{:>14}{:>22}{:>12.1f}  {}: {}\n", cell.cpus, cell.threads,
                  cell.batch, seconds_text(*cell.seconds_per_epoch), spread_text(cell),
                  cell.images_per_second.value_or(0), cell.limits.what, cell.limits.why);
  }
  system::print("{}\n", origin_text(table, gpus));
}

/// Flags that are handed on to the simulated trainings.
const std::vector<std::string> kOfTraining{"model",     "image-size", "classes",     "dropout",
                                           "optimizer", "allreduce",  "micro-batch", "precision"};

/// The command that makes this cell alone.
std::string command_of(const SimulateOptions& options, const cells::Cell& cell) {
  std::vector<std::string> words = command_words(
      options,
      {"np", "threads", "batch", "batch-size", "batch-per-rank", "json", "out", "overwrite"});
  const bool weak = cell.batch_per_rank.has_value();
  const std::size_t images = weak ? static_cast<std::size_t>(*cell.batch_per_rank) : cell.batch;
  const auto add = [&](const char* flag, std::size_t value) {
    words.emplace_back(flag);
    words.push_back(std::to_string(value));
  };
  add("--np", static_cast<std::size_t>(cell.cpus));
  if (!training::is_device(cell.backend)) add("--threads", static_cast<std::size_t>(cell.threads));
  add(weak ? "--batch-per-rank" : "--batch", images);
  return command_line(words);
}

/// What makes another experiment of a table with the same platform and model; `costs` says whose.
cells::FlagTexts options_of(const SimulateOptions& options, const std::string& costs) {
  std::set<std::string> names{"clock-ghz",       "peak-share", "memory-gbs",    "network-gbps",
                              "platform-memory", "prefetch",   "data-on-device"};
  names.insert(kOfTraining.begin(), kOfTraining.end());
  cells::FlagTexts texts{{"costs", costs}};
  for (const auto& [name, value] : options.given) {
    if (names.contains(name) && name != "model" && name != "image-size") texts[name] = value;
  }
  return texts;
}

/// A table for that model and epoch, without cells.
cells::CellTable empty_table(const SimulateOptions& options, const training::TrainingSpec& spec,
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
  table.data = options.data_or_synthetic();
  table.seed = spec.seed;
  table.machine.platform = platform;
  table.machine.build = kBuild;
  table.date = system::today();
  table.command = command_line(command_words(options, {"json", "out", "overwrite"}));
  return table;
}

/// What simulates, and with which costs.
void describe(cells::CellTable& table, const cells::CellMachine& machine,
              const training::Services& services, const std::string& costs) {
  table.machine = machine;
  table.machine.build = kBuild;
  table.commit = services.program_build;
  table.costs = costs;
}

/// cells.json, costs.json and platform.json into --out, if there is one.
void write_folder(const SimulateOptions& options, const cells::CellTable& table,
                  const nlohmann::ordered_json& costs, const simulation::Platform& platform) {
  if (options.out.empty()) return;
  const std::filesystem::path folder = options.out;
  system::make_folder(folder);
  cells::write_cells(folder / cells::kCellsName, table);
  system::write_own_file(folder / "costs.json", json_text(costs, 1) + "\n");
  system::write_own_file(folder / "platform.json",
                         json_text(simulation::to_json(platform), 2) + "\n");
}

bool holds_a_table(const SimulateOptions& options) {
  return !options.out.empty() &&
         std::filesystem::exists(std::filesystem::path(options.out) / cells::kCellsName);
}

/// Error(usage) where --out holds a table that may not be replaced.
void check_out_folder(const SimulateOptions& options) {
  if (options.overwrite || !holds_a_table(options)) return;
  fail(ExitCode::usage,
       "--out {}: holds a table already (it would be replaced); name another folder, or add "
       "--overwrite",
       options.out);
}

/// On the terminal and as --json asks for.
void say_result(const SimulateOptions& options, const cells::CellTable& table) {
  if (options.prints()) print_table(table);
  if (options.json.empty()) return;
  const std::string text = json_text(cells::to_json(table), 1) + "\n";
  if (options.json == "-") {
    system::print_lines(text);
  } else {
    system::write_given_file(options.json, text);
  }
}

// Platforms of GPUs.

simulation::GpuCosts costs_of(const SimulateOptions& options,
                              const simulation::Platform& platform) {
  if (!options.costs.empty()) return simulation::read_gpu_costs(options.costs);
  fail(ExitCode::usage,
       "--platform {}: has GPUs, and nothing says how long they compute; name costs of {} by "
       "--costs FILE, which scripts/gpu_costs writes",
       platform.name, platform.gpus->name);
}

/// The table of a platform of GPUs, by formulas. `table` has its cells, without figures.
ExitCode simulate_gpus(const SimulateOptions& asked, const training::Services& services,
                       const training::TrainingSpec& spec, const model::Graph& graph,
                       const simulation::Platform& platform, cells::CellTable table) {
  const SimulateOptions options = without_idle(asked);
  const simulation::GpuCosts costs = costs_of(options, platform);
  const simulation::GpuStepCost wanted{
      platform.gpus->name, spec.model->name, spec.image.height,
      training::precision_in_figures("cuda", std::string(word_of(options.precision)))};
  simulation::GpuStepCosts steps(costs, wanted, graph);
  const simulation::GpuForecast forecast(platform, costs.kind, std::move(steps), graph,
                                         gpu_run(options, spec, platform, table.images_per_epoch));
  for (cells::Cell& cell : table.cells) {
    forecast.fill(cell);
    cell.device = platform.gpus->name;
    cell.command = command_of(options, cell);
  }
  describe(table, platform.machine(), services, costs.origin());
  table.options =
      options_of(options, fmt::format("{}, {}", platform.gpus->name, word_of(costs.kind)));
  write_folder(options, table, simulation::to_json(costs_for(costs, wanted)), platform);
  say_result(options, table);
  return ExitCode::ok;
}

// Platforms of CPUs.

/// Flags of a simulation that its trainings have, too, as words.
std::vector<std::string> flags_of_training(const SimulateOptions& options) {
  std::vector<std::string> words;
  for (const auto& [name, value] : options.given) {
    if (std::ranges::find(kOfTraining, name) == kOfTraining.end()) continue;
    words.push_back("--" + name + "=" + value);
  }
  return words;
}

/// For the simulator's files.
std::filesystem::path make_work_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "cputrain-XXXXXX").string();
  if (mkdtemp(name.data())) return name;
  fail(ExitCode::output, "cannot make a folder " + name + ": " + system::error_text(errno) +
                             " (the simulator's files lie there); set TMPDIR");
}

/// What can be forecast gets its figures, the others their reason.
void simulate(const SimulateOptions& options, system::SignalWatch& signals,
              const simulation::Simulator& simulator, const simulation::Forecast& forecast,
              std::size_t validation_images, cells::CellTable& table) {
  std::vector<simulation::SimulationJob> todo;
  std::vector<std::size_t> ends;  // by cell: behind the last of its jobs
  for (cells::Cell& cell : table.cells) {
    cell.reason = forecast.obstacle(cell);
    if (cell.reason.empty()) {
      int repeats = options.repeat.value_or(3);
      for (simulation::SimulationJob& job : forecast.jobs(cell, flags_of_training(options))) {
        job.steps = static_cast<int>(options.steps.value_or(2));
        job.repeats = std::exchange(repeats, 1);
        job.seed = options.seed.value_or(0);
        job.validation_images = validation_images;
        todo.push_back(std::move(job));
      }
    }
    ends.push_back(todo.size());
  }
  const system::RemovedInTheEnd folder(make_work_folder());
  constexpr int kAtOnce = 2;
  std::size_t done = 0;
  system::Stopwatch watch;
  const auto say_progress = [&] {
    constexpr double kSeconds = 5;
    if (++done < todo.size() && watch.seconds() < kSeconds) return;
    system::tell("{} of {} simulations done", done, todo.size());
    watch = {};
  };
  const auto stopped = [&] { return signals.stop_requested(); };
  const auto results =
      simulation::run_cells(simulator, folder.path, todo, kAtOnce, say_progress, stopped);
  std::vector<simulation::SimulationResult> of_cells(table.cells.size());
  for (std::size_t i = 0, first = 0; i < table.cells.size(); first = ends[i++]) {
    if (first == ends[i]) continue;
    forecast.fill(table.cells[i], std::span(results).subspan(first, ends[i] - first));
    of_cells[i] = results[first];
    table.cells[i].command = command_of(options, table.cells[i]);
  }
  simulation::explain_above_linear(table.cells, of_cells, forecast.costs());
}

/// The table of a program without its simulator.
void say_missing(const SimulateOptions& options, const std::string& why, cells::CellTable& table) {
  for (cells::Cell& cell : table.cells) cell.reason = why;
  if (!options.out.empty() && !holds_a_table(options)) {
    system::make_folder(options.out);
    cells::write_cells(std::filesystem::path(options.out) / cells::kCellsName, table);
  }
  say_result(options, table);
}

ExitCode run_simulate(const FindSimulator& find_simulator, const SimulateOptions& options,
                      const training::Services& services) {
  check_out_folder(options);
  const training::TrainingSpec spec = training::choose_training(options);
  const data::DataSource source = services.data.open(options.data_request(spec.seed));
  const int classes = training::classes_of(spec, source);
  const model::Graph graph = training::build_graph(spec, classes);
  const bool here = options.platform == simulation::kHere;
  // Mistakes in platform and grid show before minutes of measuring.
  simulation::Platform platform = choose_platform(options, services, nullptr);
  cells::SweepGrid grid = planned_grid(options.grid, platform);
  cells::CellTable table = empty_table(options, spec, graph, source.train.size(), platform.name);
  table.cells = cells::cells_of(grid);
  if (platform.gpus) {
    return simulate_gpus(options, services, spec, graph, platform, std::move(table));
  }
  const simulation::Simulator simulator = find_simulator();
  if (!simulator.missing.empty()) {
    say_missing(options, simulator.missing, table);
    return ExitCode::ok;
  }
  const simulation::CostTable costs =
      simulation::find_costs({options.costs, options.measure_seconds, here}, services, spec, graph);
  if (here) {  // which --costs may have from another machine
    platform = choose_platform(options, services, &costs);
    grid = planned_grid(options.grid, platform);
    table.cells = cells::cells_of(grid);
  }
  for (const std::string& reason : cells::left_out_of(grid)) system::tell("Left out: " + reason);
  const simulation::Forecast forecast(std::move(platform), costs, graph, classes,
                                      source.train.size());
  // Times of other kernels are of another experiment, too.
  table.options =
      options_of(options, costs.cpu + (costs.kernels.empty() ? "" : ", " + costs.kernels));
  const std::string share = forecast.share_text();
  describe(table, forecast.machine(), services,
           costs.origin() + (share.empty() ? "" : "; ") + share);
  const auto armed = services.signals->arm();
  simulate(options, *services.signals, simulator, forecast, source.validation.size(), table);
  const bool stopped = services.signals->stop_requested();
  if (!stopped || !holds_a_table(options)) {
    write_folder(options, table, simulation::to_json(costs), forecast.platform());
  }
  say_result(options, table);
  if (!stopped) return ExitCode::ok;
  system::tell(
      "cputrain: stopped; what was finished is told, and the same command begins anew (with "
      "--overwrite where --out holds a table)");
  return static_cast<ExitCode>(services.signals->stop_code());
}

}  // namespace

std::unique_ptr<cli::Command> make_simulate(FindSimulator find_simulator) {
  return cli::make_command<SimulateOptions>(
      {.help =
           {.name = "simulate",
            .summary = "the same table for machines that are not here",
            .about =
                "Makes the same table for machines that are not here, from costs of layers that "
                "are measured here and a simulated network.",
            .examples =
                {{"cputrain simulate --np 1,16,96 --batch 128,1024",
                  "Simulates up to 96 CPUs of the default platform, after minutes of measuring."},
                 {"cputrain simulate --platform here --np 1,2 --batch 128",
                  "Simulates this machine, to compare with a sweep."},
                 {"cputrain simulate --platform h100-sxm-8 --np 1,2,4,8 --batch 256 --costs "
                  "gpu_costs.json",
                  "Simulates 1 to 8 GPUs, from costs of one that scripts/gpu_costs wrote."}},
            .common = {"np", "batch", "platform", "model", "image-size", "network-gbps", "costs",
                       "repeat", "out", "json"}},
       .task = {.trains = false, .one_job = false},
       .add_flags = [](cli::Flags& f, SimulateOptions& options,
                       const cli::CommandLineChoices&) { add_simulate_flags(f, options); },
       .run = std::bind_front(run_simulate, std::move(find_simulator))});
}

}  // namespace cputrain::commands
