#include "scaling/simulation/gpu/gpu_node.h"

#include "core/text.h"
#include "scaling/simulation/json_file.h"

namespace cputrain::simulation {

GpuNode gpu_node_from(const JsonObject& json) {
  json.allow_only({"name", "per_node", "memory_gb", "ring_gbs", "hop_us", "sum_us", "host_gbs",
                   "all_host_gbs"});
  constexpr double kMostGbs = 1e6, kMostMicroseconds = 1e6;
  GpuNode node;
  node.name = printable(json.text("name"));  // it is said on the terminal
  node.per_node = json.whole("per_node", 1, 1024);
  node.memory_gb = json.real("memory_gb", 0.001, 1e6);
  node.ring_gbs = json.real("ring_gbs", 0.001, kMostGbs);
  node.hop_us = json.real("hop_us", 0, kMostMicroseconds);
  node.sum_us = json.real("sum_us", 0, kMostMicroseconds);
  node.host_gbs = json.real("host_gbs", 0.001, kMostGbs);
  node.all_host_gbs = json.real("all_host_gbs", node.host_gbs, kMostGbs);
  return node;
}

nlohmann::ordered_json to_json(const GpuNode& node) {
  return {{"name", node.name},           {"per_node", node.per_node},
          {"memory_gb", node.memory_gb}, {"ring_gbs", node.ring_gbs},
          {"hop_us", node.hop_us},       {"sum_us", node.sum_us},
          {"host_gbs", node.host_gbs},   {"all_host_gbs", node.all_host_gbs}};
}

}  // namespace cputrain::simulation
