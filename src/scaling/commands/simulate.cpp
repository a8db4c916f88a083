#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/precision.h"
#include "core/version.h"
#include "model/graph.h"
#include "scaling/cells/cells.h"
#include "scaling/commands/commands.h"
#include "scaling/commands/simulate_flags.h"
#include "scaling/commands/simulated_table.h"
#include "scaling/simulation/forecast.h"
#include "scaling/simulation/gpu/gpu_forecast.h"
#include "scaling/simulation/platform.h"
#include "scaling/simulation/simulated_costs.h"
#include "system/clock.h"
#include "system/tell.h"
#include "training/request/backend_words.h"
#include "training/request/build_graph.h"
#include "training/request/training_spec.h"
#include "training/session/services.h"

namespace cputrain::commands {
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

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

/// Flags that were typed and would change nothing.
void check_flags(const SimulateOptions& options, const simulation::Platform& platform) {
  const std::vector<std::string>& without =
      platform.gpus ? kWithoutEffectOnGpus : kWithoutEffectOnCpus;
  for (const auto& [flag, value] : options.given) {
    if (options.from_environment.contains(flag) || !contains(without, flag)) continue;
    fail(ExitCode::usage,
         fmt::format("--{}: has no effect with --platform {} ({}); leave it out, or name another "
                     "platform",
                     flag, platform.name,
                     platform.gpus ? "costs and formulas say all of its GPUs, and nothing is drawn"
                                   : "its ranks compute on CPUs"));
  }
  if (platform.gpus || options.precision != Precision::exact) return;
  fail(ExitCode::usage,
       fmt::format("--precision exact: has no effect with --platform {} (CPUs have "
                   "no other float); leave it out, or name a platform of GPUs",
                   platform.name));
}

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
simulation::Platform choose_platform(const SimulateOptions& options,
                                     const training::Services& services,
                                     const simulation::CostTable* costs) {
  const std::string& asked = options.simulation.platform;
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
  check_flags(options, platform);
  change(platform, options.simulation);
  return platform;
}

/// What can be forecast gets its figures, the others their reason.
void simulate(const SimulateOptions& options, system::SignalWatch& signals,
              const simulation::Simulator& simulator, const simulation::Forecast& forecast,
              std::size_t validation_images, cells::CellTable& table) {
  std::vector<simulation::SimulationJob> todo;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < table.cells.size(); ++i) {
    cells::Cell& cell = table.cells[i];
    cell.reason = forecast.obstacle(cell);
    if (!cell.reason.empty()) continue;
    simulation::SimulationJob job = forecast.job(cell, flags_of_training(options));
    job.steps = static_cast<int>(options.steps.value_or(2));
    job.repeats = options.repeat.value_or(3);
    job.seed = options.seed.value_or(0);
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
    cell.command = command_of(options, cell);
  }
  simulation::explain_above_linear(table.cells, work, forecast.costs());
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

/// The flags' precision, as costs of GPUs call it.
std::string precision_of(const SimulateOptions& options) {
  return training::precision_in_figures("cuda", std::string(word_of(options.precision)));
}

simulation::GpuCosts costs_of(const SimulateOptions& options,
                              const simulation::Platform& platform) {
  const std::string& file = options.simulation.costs;
  if (!file.empty()) return simulation::read_gpu_costs(file);
  fail(ExitCode::usage,
       fmt::format("--platform {}: has GPUs, and nothing says how long they compute; name costs of "
                   "{} by --costs FILE, which scripts/gpu_costs writes",
                   platform.name, platform.gpus->name));
}

simulation::GpuRun run_of(const SimulateOptions& options, const training::TrainingSpec& spec,
                          const simulation::Platform& platform, std::size_t images) {
  simulation::GpuRun run{.images_per_epoch = images,
                         .image_bytes = static_cast<double>(spec.image.size()),
                         .prefetch = options.prefetch > 0,
                         .bucket_bytes = options.bucket_mb * 1e6};
  const double bytes = static_cast<double>(images) * run.image_bytes;
  const bool fits = simulation::images_fit(*platform.gpus, bytes);
  run.images_on_device = options.data_on_device == training::DataOnDevice::on ||
                         (options.data_on_device == training::DataOnDevice::automatic && fits);
  if (fits || options.data_on_device != training::DataOnDevice::on) return run;
  fail(
      ExitCode::usage,
      fmt::format("--data-on-device on: {:.3g} GB of images are more than half of the {:g} GB of a "
                  "{} (the rest is for the program's own arrays); leave it out, or --limit-train",
                  bytes / 1e9, platform.gpus->memory_gb, platform.gpus->name));
}

/// Without flags of the environment that change nothing here, which no command need repeat.
SimulateOptions without_idle(SimulateOptions options) {
  std::erase_if(options.given, [](const auto& flag) {
    return std::ranges::find(kWithoutEffectOnGpus, flag.first) != kWithoutEffectOnGpus.end();
  });
  return options;
}

ExitCode simulate_gpus(const SimulateOptions& asked, const training::Services& services,
                       const training::TrainingSpec& spec, const model::Graph& graph,
                       const simulation::Platform& platform, cells::CellTable table) {
  const SimulateOptions options = without_idle(asked);
  const simulation::GpuCosts costs = costs_of(options, platform);
  const simulation::GpuTraining training{platform.gpus->name, spec.model->name, spec.image.height,
                                         precision_of(options)};
  simulation::GpuStepCosts steps(costs, training, graph);
  const simulation::GpuForecast forecast(platform, costs.kind, std::move(steps), graph,
                                         run_of(options, spec, platform, table.images_per_epoch));
  for (cells::Cell& cell : table.cells) {
    forecast.fill(cell);
    cell.device = platform.gpus->name;
    cell.command = command_of(options, cell);
  }
  table.machine = forecast.machine();
  table.machine.build = std::string("cputrain ") + std::string(kVersion);
  table.commit = services.program_build;
  table.costs = costs.origin();
  table.options = options_of(options, platform.gpus->name + ", " + to_text(costs.kind));
  write_folder(options, table, simulation::to_json(costs_for(costs, training)), platform);
  say_result(options, table);
  return ExitCode::ok;
}

class SimulateCommand final : public cli::CommandWith<SimulateOptions> {
 public:
  explicit SimulateCommand(FindSimulator find_simulator)
      : CommandWith({.trains = false, .one_job = false}),
        find_simulator_(std::move(find_simulator)) {}

  cli::CommandEntry help() const override {
    return {
        .name = "simulate",
        .summary = "the same table for machines that are not here",
        .about =
            "Makes the same table for machines that are not here, from costs of layers that "
            "are measured here and a simulated network.",
        .examples = {{"cputrain simulate --np 1,16,96 --batch 128,1024",
                      "Simulates up to 96 CPUs of the default platform, after minutes of "
                      "measuring."},
                     {"cputrain simulate --platform here --np 1,2 --batch 128",
                      "Simulates this machine, to compare with a sweep."},
                     {"cputrain simulate --platform h100-sxm-8 --np 1,2,4,8 --batch 256 --costs "
                      "gpu_costs.json",
                      "Simulates 1 to 8 GPUs, from costs of one that scripts/gpu_costs wrote."}},
        .common = {"np", "batch", "platform", "model", "image-size", "network-gbps", "costs",
                   "repeat", "out", "json"}};
  }

  void add_flags(cli::Flags& f, const cli::CommandLineChoices&) override {
    add_simulate_flags(f, options_);
  }
  ExitCode run(const training::Services&) override;

 private:
  FindSimulator find_simulator_;
};

ExitCode SimulateCommand::run(const training::Services& services) {
  check_out_folder(options_);
  const training::TrainingSpec spec = training::choose_training(options_);
  const data::DataSource source = services.data.open(options_.data_request(spec.seed));
  const int classes = training::classes_of(spec, source);
  const model::Graph graph = training::build_graph(spec, classes);
  const bool here = options_.simulation.platform == simulation::kHere;
  // Mistakes in platform and grid show before minutes of measuring.
  simulation::Platform platform = choose_platform(options_, services, nullptr);
  cells::SweepCells planned = planned_cells(options_.simulation, platform);
  cells::CellTable table = empty_table(options_, spec, graph, source.train.size(), platform.name);
  if (platform.gpus) {
    table.cells = std::move(planned.cells);
    return simulate_gpus(options_, services, spec, graph, platform, std::move(table));
  }
  const simulation::Simulator simulator = find_simulator_();
  if (!simulator.missing.empty()) {
    table.cells = std::move(planned.cells);
    say_missing(options_, simulator.missing, table);
    return ExitCode::ok;
  }
  const simulation::CostTable costs =
      simulation::costs_of(options_.simulation, services, spec, graph, here);
  if (here) {  // which --costs may have from another machine
    platform = choose_platform(options_, services, &costs);
    planned = planned_cells(options_.simulation, platform);
  }
  for (const std::string& reason : planned.left_out) system::tell("Left out: " + reason);
  table.cells = std::move(planned.cells);
  const simulation::Forecast forecast(std::move(platform), costs, graph, classes,
                                      source.train.size());
  // Times of other kernels are of another experiment, too.
  table.options =
      options_of(options_, costs.cpu + (costs.kernels.empty() ? "" : ", " + costs.kernels));
  table.machine = forecast.machine();
  table.machine.build = std::string("cputrain ") + std::string(kVersion);
  table.commit = services.program_build;
  table.costs = costs.origin();
  const auto armed = services.signals->arm();
  simulate(options_, *services.signals, simulator, forecast, source.validation.size(), table);
  const bool stopped = services.signals->stop_requested();
  if (!stopped || !holds_a_table(options_)) {
    write_folder(options_, table, simulation::to_json(costs), forecast.platform());
  }
  say_result(options_, table);
  if (!stopped) return ExitCode::ok;
  system::tell(
      "cputrain: stopped; what was finished is told, and the same command begins anew (with "
      "--overwrite where --out holds a table)");
  return static_cast<ExitCode>(services.signals->stop_code());
}

}  // namespace

std::unique_ptr<cli::Command> make_simulate(FindSimulator find_simulator) {
  return std::make_unique<SimulateCommand>(std::move(find_simulator));
}

}  // namespace cputrain::commands
