#include <algorithm>
#include <set>

#include "cli/flags/flag_groups.h"
#include "core/error.h"
#include "core/text.h"
#include "scaling/commands/commands.h"

namespace cputrain::commands {
namespace {

void add_grid(cli::Flags& f, SimulateOptions& c) {
  f.group("Grid");
  f.wholes("np", c.grid.cpus, 1, sweep::kMostColumn,
           "CPUs, or GPUs, of each column [1,2,4,... up to the platform's]");
  f.wholes("threads", c.grid.threads, 1, 4096,
           "threads of each rank: --np 4 makes 4 / N ranks, with the speed-up that is measured "
           "here [1]");
  f.wholes("batch", c.grid.batches, 1, 16'777'216,
           "images in a step, over all ranks [128,256,512,1024]");
  f.alias("batch-size", "batch");
  f.wholes("batch-per-rank", c.grid.batches_per_rank, 1, 16'777'216,
           "images in a step of each rank, for weak scaling, beside --batch or in its place");
  f.group("Machine");
  f.text("platform", c.platform, "NAME|FILE",
         "machines to simulate: " + join(simulation::platform_names(), ", ") +
             ", or a platform file (.json) [skylake-96]");
  f.suggest("platform", simulation::platform_names());
  f.real("clock-ghz", c.clock_ghz, 0.01, 100,
         "clock of the cores, however many work [the platform's]");
  f.real("peak-share", c.peak_share, 0.01, 100,
         "share of its multiply-add peak that a core reaches, as bench step --micro-batch 8 prints "
         "it (more than 1 where methods save multiply-adds), in place of a range [the platform's]");
  f.real("memory-gbs", c.memory_gbs, 0.01, 1e6,
         "bandwidth of each node's memory in GB/s [the platform's]");
  f.real("platform-memory", c.memory_gb, 0.001, 1e6,
         "memory of each node in GB: a cell whose training needs more is n/a and says how much "
         "[the platform's]");
  f.real("network-gbps", c.network_gbps, 0.001, 1e6,
         "bandwidth of each node's network in each direction in Gbit/s [the platform's]");
  f.text("costs", c.costs, "FILE",
         "costs of layers (costs.json) that another simulation measured, or of steps on GPUs that "
         "scripts/gpu_costs wrote [of CPUs: measured here; kept for later simulations, but not for "
         "the platform here]");
  f.whole("measure-seconds", c.measure_seconds, 1, 86'400,
          "measure costs anew for at least N seconds; those of 60 seconds and more are kept [60; "
          "300 for the platform here]");
  f.exclusive("costs", "measure-seconds");
}

/// Flags that change nothing on a platform of GPUs, or of CPUs.
const std::set<std::string> kWithoutEffectOnGpus{
    "threads",   "clock-ghz", "peak-share",  "platform-memory", "measure-seconds", "dropout",
    "optimizer", "allreduce", "micro-batch", "steps",           "repeat",          "seed"};
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
void change(simulation::Platform& platform, const SimulateOptions& options) {
  if ((options.clock_ghz || options.peak_share) && !platform.cpu) {
    fail(ExitCode::usage,
         "--{} with --platform {}, whose cores are as measured (neither clock nor peak is known "
         "apart); name another platform",
         options.clock_ghz ? "clock-ghz" : "peak-share", platform.name);
  }
  if (options.clock_ghz) platform.cpu->clock = {{1, *options.clock_ghz}};
  if (const auto share = options.peak_share) {
    platform.cpu->share = {.low = *share, .likely = *share, .high = *share};
  }
  if (options.memory_gb) platform.set_memory(*options.memory_gb);
  if (options.memory_gbs) {
    platform.node_gbs = *options.memory_gbs;
    platform.core_gbs = std::min(platform.core_gbs, platform.node_gbs);
  }
  if (options.network_gbps) {
    if (platform.nodes == 1) {
      fail(ExitCode::usage,
           "--network-gbps with --platform {}, which is one machine; name a cluster",
           platform.name);
    }
    platform.network_gbps = *options.network_gbps;
  }
}

}  // namespace

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

simulation::Platform choose_platform(const SimulateOptions& options,
                                     const training::Services& services,
                                     const simulation::CostTable* costs) {
  const std::string& asked = options.platform;
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
  change(platform, options);
  return platform;
}

cells::SweepGrid planned_grid(cells::SweepGrid grid, const simulation::Platform& platform) {
  grid.backends = {platform.gpus ? "cuda" : "cpu"};
  const int all = std::min(platform.most_ranks(), sweep::kMostColumn);
  if (grid.cpus.empty()) grid.cpus = cells::doubled(1, all);
  if (grid.batches.empty() && grid.batches_per_rank.empty()) grid.batches = {128, 256, 512, 1024};
  sweep::check_size(grid);
  const std::vector<cells::Cell> planned = cells::cells_of(grid);
  if (planned.empty()) {
    fail(ExitCode::usage, "--np, --threads: {}", cells::left_out_of(grid).front());
  }
  sweep::check_limits(planned, grid);
  return grid;
}

SimulateOptions without_idle(SimulateOptions options) {
  std::erase_if(options.given,
                [](const auto& flag) { return kWithoutEffectOnGpus.contains(flag.first); });
  return options;
}

simulation::GpuRun gpu_run(const SimulateOptions& options, const training::TrainingSpec& spec,
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

}  // namespace cputrain::commands
