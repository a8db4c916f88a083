#include "scaling/commands/simulate.h"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "scaling/commands/commands.h"
#include "scaling/simulation/forecast.h"
#include "system/clock.h"
#include "system/file_system.h"
#include "system/tell.h"
#include "training/request/build_graph.h"
#include "training/session/services.h"

namespace cputrain::commands {
namespace {

/// A folder for the simulator's files that is gone in the end.
class WorkFolder {
 public:
  WorkFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "cputrain-XXXXXX").string();
    if (!mkdtemp(name.data())) {
      fail(ExitCode::output, "cannot make a folder " + name + ": " + system::error_text(errno) +
                                 " (the simulator's files lie there); set TMPDIR");
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
    system::tell("{} of {} cells simulated", done, todo.size());
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

class SimulateCommand final : public cli::CommandWith<SimulateOptions> {
 public:
  explicit SimulateCommand(FindSimulator find_simulator)
      : CommandWith({.trains = false, .one_job = false}),
        find_simulator_(std::move(find_simulator)) {}

  cli::CommandEntry help() const override {
    return {.name = "simulate",
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
  describe(table, forecast.machine(), services, costs.origin());
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
