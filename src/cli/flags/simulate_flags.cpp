#include "cli/flags/simulate_flags.h"

#include <algorithm>

#include "cli/flags/flag_groups.h"
#include "core/text.h"
#include "simulation/platform.h"
#include "sweep/grid_limits.h"

namespace cputrain::cli {
namespace {

void add_grid(Flags& f, Config& c) {
  f.group("Grid");
  f.wholes("np", c.simulation.cpus, 1, sweep::kMostColumn,
           "CPUs of each column [1, 2, 4, ... up to the platform's]");
  f.wholes(
      "threads", c.simulation.threads, 1, 4096,
      "threads of a rank: --np 4 makes 4 / N ranks; by the speed-up measured here with a thread "
      "on each core [1]");
  f.wholes("batch", c.simulation.batches, 1, 16'777'216,
           "images in a step, over all ranks [128,256,512,1024]");
  f.alias("batch-size", "batch");
  f.wholes("batch-per-rank", c.simulation.batches_per_rank, 1, 16'777'216,
           "images in a step of each rank, for weak scaling; beside --batch or instead of it");
  f.group("Machine");
  f.text("platform", c.simulation.platform, "NAME|FILE",
         join(simulation::platform_names(), ", ") + ", or a platform file (.json) [skylake-96]");
  f.real("clock-ghz", c.simulation.clock_ghz, 0.01, 100,
         "of the platform's cores, however many work [the platform's]");
  f.real("memory-gbs", c.simulation.memory_gbs, 0.01, 1e6,
         "GB/s between a node's memory and its cores [the platform's]");
  f.real("network-gbps", c.simulation.network_gbps, 0.001, 1e6,
         "Gbit/s of each node in each direction [the platform's]");
  f.text("costs", c.simulation.costs, "FILE",
         "costs of layers as a simulation has measured them elsewhere (costs.json) [measured here: "
         "kept for platforms of their own, anew each time for `here`]");
  f.whole("measure-seconds", c.simulation.measure_seconds, 1, 86'400,
          "measure costs anew, for at least N s after preparations: a machine whose host has other "
          "work changes its speed within minutes; kept from 60 s on [60; 300 for `here`]");
  f.exclusive("costs", "measure-seconds");
}

}  // namespace

const std::vector<std::string> kOfTraining{"model",     "image-size", "classes",     "dropout",
                                           "optimizer", "allreduce",  "micro-batch", "precision"};

void add_simulate_flags(Flags& f, Config& c) {
  add_grid(f, c);
  add_model_flags(f, c);
  f.group("Training");
  f.text("data", c.data, "DATA",
         "images to measure costs with; their number makes an epoch [synthetic]");
  f.whole("limit-train", c.limit_train, 1, 1'000'000'000, "use at most N training images");
  f.whole("micro-batch", c.micro_batch, 1, 65536,
          "images that a rank computes at once [as in train]");
  f.choice("optimizer", {"sgd", "rmsprop", "adam", "lars", "lamb"}, "update rule [the model's]",
           [&c](const std::string& name) { c.optimizer = name; });
  f.parsed(
      "allreduce", "NAME",
      "how gradients are summed, as in train [shm on one node; hierarchical on several, with the "
      "algorithm that latency and bandwidth make the quickest]",
      [&c](const std::string& text) { c.allreduce = comm::parse_allreduce(text); });
  f.choice("precision", {"float", "bf16"}, "as in train [float]",
           [&c](const std::string& name) { c.precision = name; });
  f.group("Measurement");
  f.whole("steps", c.steps, 1, 1'000'000, "simulated steps, which are scaled to an epoch [2]");
  f.whole("repeat", c.repeat, 1, 1000, "simulations of each cell with other disturbances [3]");
  f.whole("seed", c.seed, 0, 9'000'000'000'000'000'000, "disturbances are a function of it [0]");
  f.group("Output");
  f.text("out", c.out, "DIR", "also write cells.json, costs.json and platform.json there");
  f.yes("overwrite", c.overwrite, "--out may hold an earlier simulation");
  f.text("json", c.json, "FILE", "write the table as JSON; -: to standard output, and only it");
}

std::vector<std::string> flags_of_training(const Config& config) {
  std::vector<std::string> words;
  for (const auto& [name, value] : config.given) {
    if (std::ranges::find(kOfTraining, name) == kOfTraining.end()) continue;
    words.push_back("--" + name + "=" + value);
  }
  return words;
}

}  // namespace cputrain::cli
