#include "scaling/commands/simulated_gpus.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "scaling/commands/simulated_table.h"
#include "scaling/simulation/gpu/gpu_forecast.h"
#include "training/request/backend_words.h"

namespace cputrain::commands {
namespace {

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

/// Without flags of the environment that change nothing here, so commands leave them out.
SimulateOptions without_idle(SimulateOptions options) {
  std::erase_if(options.given, [](const auto& flag) { return is_idle_on_gpus(flag.first); });
  return options;
}

}  // namespace

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
