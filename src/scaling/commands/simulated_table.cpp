#include "scaling/commands/simulate.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "core/version.h"
#include "scaling/cells/explanation.h"
#include "scaling/simulation/gpu/gpu_forecast.h"
#include "scaling/sweep/sweep_request.h"
#include "system/date.h"
#include "system/files.h"
#include "system/print.h"
#include "training/request/flag_grammars.h"

namespace cputrain::commands {
namespace {

const std::string kBuild = "cputrain " + std::string(kVersion);

/// "./cputrain simulate --np 1,2 ...", for the record; without the flags named.
std::vector<std::string> words_of(const SimulateOptions& options,
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
  return fmt::format("{:.2f} to {:.2f}", cell.spread->min, cell.spread->max);
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

// Platforms of GPUs.

/// The flags' precision, as costs of GPUs call it.
std::string precision_of(const SimulateOptions& options) {
  return training::precision_in_figures("cuda", std::string(word_of(options.precision)));
}

simulation::GpuCosts costs_of(const SimulateOptions& options,
                              const simulation::Platform& platform) {
  const std::string& file = options.simulation.costs;
  if (!file.empty()) return simulation::read_gpu_costs(file);
  fail(ExitCode::usage,
       "--platform {}: has GPUs, and nothing says how long they compute; name costs of {} by "
       "--costs FILE, which scripts/gpu_costs writes",
       platform.name, platform.gpus->name);
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
  fail(ExitCode::usage,
       "--data-on-device on: {:.3g} GB of images are more than half of the {:g} GB of a {} (the "
       "rest is for the program's own arrays); leave it out, or --limit-train",
       bytes / 1e9, platform.gpus->memory_gb, platform.gpus->name);
}

/// Without flags of the environment that change nothing here, so commands leave them out.
SimulateOptions without_idle(SimulateOptions options) {
  std::erase_if(options.given, [](const auto& flag) { return is_idle_on_gpus(flag.first); });
  return options;
}

}  // namespace

cells::SweepCells planned_cells(const simulation::SimulationRequest& request,
                                const simulation::Platform& platform) {
  cells::SweepGrid grid{.cpus = request.cpus,
                        .threads = request.threads,
                        .batches = request.batches,
                        .batches_per_rank = request.batches_per_rank,
                        .backends = {platform.gpus ? "cuda" : "cpu"}};
  if (grid.threads.empty()) grid.threads = {1};
  const int all = std::min(platform.most_ranks(), sweep::kMostColumn);
  for (int n = 1; request.cpus.empty() && n < all; n *= 2) grid.cpus.push_back(n);
  if (request.cpus.empty()) grid.cpus.push_back(all);
  if (grid.batches.empty() && grid.batches_per_rank.empty()) grid.batches = {128, 256, 512, 1024};
  sweep::check_size(grid);
  cells::SweepCells planned = cells::cells_of(grid);
  if (planned.cells.empty()) {
    fail(ExitCode::usage, "--np, --threads: {}", planned.left_out.front());
  }
  sweep::check_limits(planned.cells, grid);
  return planned;
}

std::string command_of(const SimulateOptions& options, const cells::Cell& cell) {
  std::vector<std::string> words = words_of(
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

/// What makes another experiment of a table with the same platform and model.
cells::FlagTexts options_of(const SimulateOptions& options, const std::string& costs) {
  std::set<std::string> names{"clock-ghz",       "memory-gbs", "network-gbps",
                              "platform-memory", "prefetch",   "data-on-device"};
  names.insert(kOfTraining.begin(), kOfTraining.end());
  cells::FlagTexts texts{{"costs", costs}};
  for (const auto& [name, value] : options.given) {
    if (names.contains(name) && name != "model" && name != "image-size") texts[name] = value;
  }
  return texts;
}

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
  table.command = command_line(words_of(options, {"json", "out", "overwrite"}));
  return table;
}

void describe(cells::CellTable& table, const cells::CellMachine& machine,
              const training::Services& services, const std::string& costs) {
  table.machine = machine;
  table.machine.build = kBuild;
  table.commit = services.program_build;
  table.costs = costs;
}

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

void check_out_folder(const SimulateOptions& options) {
  if (options.overwrite || !holds_a_table(options)) return;
  fail(ExitCode::usage,
       "--out {}: holds a table already (it would be replaced); name another folder, or add "
       "--overwrite",
       options.out);
}

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
  describe(table, forecast.machine(), services, costs.origin());
  table.options = options_of(options, platform.gpus->name + ", " + to_text(costs.kind));
  write_folder(options, table, simulation::to_json(costs_for(costs, training)), platform);
  say_result(options, table);
  return ExitCode::ok;
}

}  // namespace cputrain::commands
