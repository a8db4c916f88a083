#pragma once

#include <nlohmann/json.hpp>

#include "scaling/simulation/forecast.h"
#include "scaling/simulation/platform.h"

/// Costs and a machine of five cores, made up for tests.
namespace cputrain::simulation {

using nlohmann::json;

inline CostTable costs() {
  CostTable table;
  table.cpu = table.host = table.build = table.model = table.network = "x";
  table.image_size = 8;
  table.classes = 1;
  table.cores = table.hardware_threads = 2;
  table.memory_bytes = 1e9;
  table.sizes = {1, 8};
  table.workspace_bytes = {1e6, 8e6};
  for (const int active : {1, 2}) {
    table.by_active.push_back({.active = active,
                               .fma_gflops = 384,
                               .triad_gbs = 8.0 + 3 * active,
                               .update_seconds_per_number = 1e-9,
                               .sum_gbs = 10,
                               .spread = 0.1,
                               .layers = {{"conv", {1, 8}, {2, 16}}}});
  }
  return table;
}

inline json platform() {
  return {{"format", "cputrain platform 1"},
          {"name", "five"},
          {"description", "five cores"},
          {"sources", {"none"}},
          {"nodes", 4},
          {"cores", 5},
          {"threads_per_core", 2},
          {"memory_gb", 16},
          {"cpu",
           {{"flops_per_cycle", 64},
            {"clock_ghz", {{{"active_cores", 1}, {"ghz", 3}}, {{"active_cores", 5}, {"ghz", 2}}}},
            {"second_thread_gain", 1.25}}},
          {"memory", {{"core_gbs", 8}, {"node_gbs", 20}, {"latency_us", 1}}},
          {"network", {{"gbps", 10}, {"latency_us", 30}, {"efficiency", 0.94}}}};
}

inline json growing() {
  json file = platform();
  file["nodes"] = 1;
  file["grows_with_cell"] = true;
  file.erase("network");
  return file;
}

}  // namespace cputrain::simulation
