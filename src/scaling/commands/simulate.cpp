#include "scaling/commands/simulate.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cli/flags/flag_groups.h"
#include "core/error.h"
#include "core/text.h"
#include "scaling/commands/commands.h"
#include "scaling/simulation/forecast.h"
#include "scaling/sweep/sweep_request.h"
#include "system/clock.h"
#include "system/file_system.h"
#include "system/print.h"
#include "training/request/build_graph.h"
#include "training/session/services.h"

namespace cputrain::commands {
namespace {

void add_grid(cli::Flags& f, SimulateOptions& c) {
  f.group("Grid");
  f.wholes("np", c.simulation.cpus, 1, sweep::kMostColumn,
           "CPUs, or GPUs, of each column [1,2,4,... up to the platform's]");
  f.wholes("threads", c.simulation.threads, 1, 4096,
           "threads of each rank: --np 4 makes 4 / N ranks, with the speed-up that is measured "
           "here [1]");
  f.wholes("batch", c.simulation.batches, 1, 16'777'216,
           "images in a step, over all ranks [128,256,512,1024]");
  f.alias("batch-size", "batch");
  f.wholes("batch-per-rank", c.simulation.batches_per_rank, 1, 16'777'216,
           "images in a step of each rank, for weak scaling, beside --batch or in its place");
  f.group("Machine");
  f.text("platform", c.simulation.platform, "NAME|FILE",
         "machines to simulate: " + join(simulation::platform_names(), ", ") +
             ", or a platform file (.json) [skylake-96]");
  f.suggest("platform", simulation::platform_names());
  f.real("clock-ghz", c.simulation.clock_ghz, 0.01, 100,
         "clock of the cores, however many work [the platform's]");
  f.real("memory-gbs", c.simulation.memory_gbs, 0.01, 1e6,
         "bandwidth of each node's memory in GB/s [the platform's]");
  f.real("platform-memory", c.simulation.memory_gb, 0.001, 1e6,
         "memory of each node in GB: a cell whose training needs more is n/a and says how much "
         "[the platform's]");
  f.real("network-gbps", c.simulation.network_gbps, 0.001, 1e6,
         "bandwidth of each node's network in each direction in Gbit/s [the platform's]");
  f.text("costs", c.simulation.costs, "FILE",
         "costs of layers (costs.json) that another simulation measured, or of steps on GPUs that "
         "scripts/gpu_costs wrote [of CPUs: measured here; kept for later simulations, but not for "
         "the platform here]");
  f.whole("measure-seconds", c.simulation.measure_seconds, 1, 86'400,
          "measure costs anew for at least N seconds; those of 60 seconds and more are kept [60; "
          "300 for the platform here]");
  f.exclusive("costs", "measure-seconds");
}

/// Flags that change nothing on a platform of GPUs, or of CPUs.
const std::set<std::string> kWithoutEffectOnGpus{
    "threads",   "clock-ghz",   "platform-memory", "measure-seconds", "dropout", "optimizer",
    "allreduce", "micro-batch", "steps",           "repeat",          "seed"};
const std::set<std::string> kWithoutEffectOnCpus{"prefetch", "data-on-device"};

/// Flags that were typed and would change nothing.
void check_flags(const SimulateOptions& options, const simulation::Platform& platform) {
  const std::set<std::string>& without =
      platform.gpus ? kWithoutEffectOnGpus : kWithoutEffectOnCpus;
  for (const auto& [flag, value] : options.given) {
    if (options.from_environment.contains(flag) || !without.contains(flag)) continue;
    fail(ExitCode::usage,
         "--{}: has no effect with --platform {} ({}); leave it out, or name another platform",
         flag, platform.name,
         platform.gpus ? "costs and formulas say all of its GPUs, and nothing is drawn"
                       : "its ranks compute on CPUs");
  }
  if (platform.gpus || options.precision != Precision::exact) return;
  fail(ExitCode::usage,
       "--precision exact: has no effect with --platform {} (CPUs have no other float); leave it "
       "out, or name a platform of GPUs",
       platform.name);
}

/// Puts what the flags change into the platform.
void change(simulation::Platform& platform, const simulation::SimulationRequest& request) {
  if (request.clock_ghz) {
    if (!platform.cpu) {
      fail(ExitCode::usage,
           "--clock-ghz with --platform {}, whose cores are as measured (their clock is not "
           "known); name another platform",
           platform.name);
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
      fail(ExitCode::usage,
           "--network-gbps with --platform {}, which is one machine; name a cluster",
           platform.name);
    }
    platform.network_gbps = *request.network_gbps;
  }
}

void add_simulate_flags(cli::Flags& f, SimulateOptions& c) {
  add_grid(f, c);
  add_model_flags(f, c);
  f.group("Training");
  add_row(f, c, "data", "images to measure costs with; an epoch has as many [synthetic]");
  add_row(f, c, "limit-train");
  add_row(f, c, "micro-batch", "images that a rank computes at once [as in train]");
  add_row(f, c, "optimizer", "update rule [the model's]");
  add_row(f, c, "allreduce",
          "algorithm that sums gradients, as in train [shm on one node, on several hierarchical "
          "with the quickest algorithm]");
  f.choice("precision", words_of<Precision>({Precision::f32, Precision::bf16, Precision::exact}),
           "number format of products, as in train; exact: of GPUs [float]",
           [&c](const std::string& name) { c.precision = *value_named<Precision>(name); });
  add_row(f, c, "prefetch", "of GPUs: micro-batches that are made ahead, as in train [1]");
  f.suggest("prefetch", {"0", "1"});
  add_row(f, c, "data-on-device",
          "of GPUs: all training images stay on each, or come from the host in every step; auto: "
          "they stay where they take at most half of its memory [auto]");
  f.group("Measurement");
  f.whole("steps", c.steps, 1, 1'000'000, "simulated steps, scaled to an epoch [2]");
  f.whole("repeat", c.repeat, 1, 1000, "simulations of each cell with other disturbances [3]");
  add_row(f, c, "seed", "number that decides the disturbances [0]");
  f.group("Output");
  f.text("out", c.out, "DIR",
         "folder to which cells.json, costs.json and platform.json are written");
  f.yes("overwrite", c.overwrite, "allow --out to hold an earlier simulation");
  f.text("json", c.json, "FILE",
         "write the table as JSON (-: to standard output, and nothing else there)");
}

/// Flags of a simulation that its trainings have, too, as words.
std::vector<std::string> flags_of_training(const SimulateOptions& options) {
  std::vector<std::string> words;
  for (const auto& [name, value] : options.given) {
    if (std::ranges::find(kOfTraining, name) == kOfTraining.end()) continue;
    words.push_back("--" + name + "=" + value);
  }
  return words;
}

/// The platform with what the flags change. Before costs are measured `here` is the machine's cores
/// alone. Error(usage) for flags that were typed and would change nothing.
simulation::Platform choose_platform(const SimulateOptions& options,
                                     const training::Services& services,
                                     const simulation::CostTable* costs) {
  const std::string& asked = options.simulation.platform;
  const std::string name = asked.empty() ? "skylake-96" : asked;
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

const std::vector<std::string> kOfTraining{"model",     "image-size", "classes",     "dropout",
                                           "optimizer", "allreduce",  "micro-batch", "precision"};

bool is_idle_on_gpus(const std::string& flag) { return kWithoutEffectOnGpus.contains(flag); }

}  // namespace cputrain::commands
