#pragma once

#include "model/graph.h"
#include "tests/scaling/simulation/made_machine.h"

/// Nodes of GPUs and what a small network costs on one of them, made up for tests.
namespace cputrain::simulation {

/// 4 nodes of 4 GPUs: 10 GB/s in a node, 8 Gbit/s = 1 GB/s between nodes.
inline json gpus(double hop_us = 0, double sum_us = 0, double latency_us = 0) {
  json file = platform();
  file.erase("cpu");
  file["gpu"] = {{"name", "G"},      {"per_node", 4},    {"memory_gb", 1}, {"ring_gbs", 10},
                 {"hop_us", hop_us}, {"sum_us", sum_us}, {"host_gbs", 4},  {"all_host_gbs", 8}};
  file["network"] = {{"gbps", 8}, {"latency_us", latency_us}, {"efficiency", 1}};
  return file;
}

/// Two layers with 48 and 64 weights, which need no padding; backward of the second comes first.
inline model::Graph graph() {
  model::Graph g({1, 1, 3});
  g.add(model::Flatten{});
  g.add(model::Dense{.units = 16, .bias = false}, "one");
  g.add(model::Dense{.units = 4, .bias = false}, "two");
  return g;
}

inline json layer(const std::string& name, double forward, double backward) {
  return {{"name", name}, {"forward", forward}, {"backward", backward}};
}

inline json step(int batch, double unit) {
  return {{"gpu", "G"},
          {"model", "m"},
          {"image_size", 1},
          {"parameters", 112},
          {"precision", "tf32"},
          {"batch", batch},
          {"micro_batch", batch},
          {"seconds", 16 * unit},
          {"update", 2 * unit},
          {"layers", {layer("one", unit, 4 * unit), layer("two", 2 * unit, 6 * unit)}}};
}

inline json gpu_costs_file() {
  return {{"format", "cputrain gpu costs 1"},
          {"kind", "predicted"},
          {"source", "made up"},
          {"steps", {step(4, 1e-3), step(8, 2e-3), step(16, 4e-3)}}};
}

}  // namespace cputrain::simulation
