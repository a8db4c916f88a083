#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "scaling/simulation/gpu/gpu_forecast.h"
#include "scaling/simulation/simulator.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/scaling/simulation/made_gpus.h"

namespace cputrain::testing::simulation_fuzzer {
namespace {

using namespace simulation;

void use(const Platform& platform) {
  const std::string written = json_text(to_json(platform));
  promise(json_text(to_json(platform_from_json(json::parse(written), "again"))) == written,
          "a platform that is written is read again");
  constexpr int kRanks = 3;
  if (platform.most_ranks() < kRanks) return;
  const Platform own = platform.of_cell(kRanks);
  simgrid_platform(own, nodes_used(own, kRanks));
  promise(slowdown(own, costs(), kRanks - 1, {kRanks}) > 0, "a rank takes its time");
}

void use(const CostTable& table) {
  const std::string written = json_text(to_json(table));
  promise(json_text(to_json(costs_from_json(json::parse(written), "again"))) == written,
          "costs that are written are read again");
  for (const int active : {1, 2, 1000}) table.with_threads(table.when(active), 2);
  interpolate(table.sizes, table.workspace_bytes, 5);
  promise(table.is_steady() == (table.drift() <= CostTable::kMostDrift), "drift is a number");
}

void use(const GpuCosts& costs) {
  const std::string written = json_text(to_json(costs));
  promise(json_text(to_json(gpu_costs_from_json(json::parse(written), "again"))) == written,
          "costs of GPUs that are written are read again");
  const GpuStepCost& first = costs.steps.front();
  const GpuStepCosts steps(costs, {first.gpu, first.model, first.image_size, first.precision},
                           graph());
  promise(steps.at(first.batch).seconds() > 0, "a step takes its time");
  const GpuForecast forecast(platform_from_json(gpus(), "made"), costs.kind, steps, graph(),
                             {.images_per_epoch = 1000});
  cells::Cell cell{.cpus = 2, .batch = 16, .backend = "cuda", .ranks = 2};
  forecast.fill(cell);
  promise(cell.reason.empty() == cell.seconds_per_epoch.has_value(),
          "a cell has seconds or a reason");
}

/// Platforms, and what a model costs.
std::vector<std::string> seeds() {
  return {json_text(platform()), json_text(growing()), json_text(to_json(costs())),
          json_text(gpus()), json_text(gpu_costs_file())};
}

bool takes(const std::string& text) {
  const auto path = own_file("simulation.json", text);
  const bool is_platform = is_taken([&] { use(platform_from_json(read_file(path), "it")); });
  const bool is_of_gpus = is_taken([&] { use(read_gpu_costs(path)); });
  return is_taken([&] { use(read_costs(path)); }) || is_platform || is_of_gpus;
}

const Fuzzer kFuzzer{"simulation", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::simulation_fuzzer
