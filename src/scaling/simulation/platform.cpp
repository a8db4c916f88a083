#include "scaling/simulation/platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"
#include "scaling/cells/cores.h"
#include "scaling/simulation/json_file.h"
#include "scaling/simulation/platform_files.h"

namespace cputrain::simulation {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "cputrain platform 1";

/// The machine whose costs were measured: its bandwidth is what its cores reached.
Platform machine_of_costs(const CostTable& costs) {
  Platform platform;
  platform.name = kHere;
  platform.description = fmt::format("{}, {} cores", costs.cpu, costs.cores);
  platform.sources = {"measured by cputrain simulate"};
  platform.cores = costs.cores;
  platform.threads_per_core = std::max(1, costs.hardware_threads / costs.cores);
  platform.memory_gb = costs.memory_bytes / 1e9;
  platform.core_gbs = costs.alone().triad_gbs;
  platform.node_gbs =
      std::ranges::max_element(costs.by_active, {}, &CostsWhenActive::triad_gbs)->triad_gbs;
  platform.node_latency_us = 1;
  return platform;
}

/// The words of a point in a file, and between what its figure may be.
struct PointNames {
  const char *list, *at, *value;
  double min, max;
};
constexpr PointNames kClock{"clock_ghz", "active_cores", "ghz", 0.01, 100};
constexpr PointNames kMemory{"memory_gb", "cpus", "gb", 0.001, 1e6};

std::vector<PlatformPoint> points_from(const JsonObject& json, const PointNames& names) {
  std::vector<PlatformPoint> points;
  for (const JsonObject& point : json.objects(names.list, 256)) {
    point.allow_only({names.at, names.value});
    points.push_back(
        {point.whole(names.at, 1, 1'000'000), point.real(names.value, names.min, names.max)});
    const auto n = points.size();
    if (n > 1 && points[n - 1].at <= points[n - 2].at) {
      point.wrong(std::string(names.at) + " must ascend");
    }
  }
  return points;
}

Json to_json(const std::vector<PlatformPoint>& points, const PointNames& names) {
  Json json = Json::array();
  for (const PlatformPoint& p : points) json.push_back({{names.at, p.at}, {names.value, p.value}});
  return json;
}

PlatformCpu cpu_from(const JsonObject& json) {
  json.allow_only({"flops_per_cycle", "clock_ghz", "second_thread_gain"});
  PlatformCpu cpu;
  cpu.flops_per_cycle = json.real("flops_per_cycle", 1, 1e6);
  cpu.second_thread_gain = json.real("second_thread_gain", 0.5, 8);
  cpu.clock = points_from(json, kClock);
  return cpu;
}

Json to_json(const PlatformCpu& cpu) {
  return {{"flops_per_cycle", cpu.flops_per_cycle},
          {"clock_ghz", to_json(cpu.clock, kClock)},
          {"second_thread_gain", cpu.second_thread_gain}};
}

/// A number, or a list by CPUs of a machine that grows with them.
void read_memory(const JsonObject& json, Platform& platform) {
  if (!json.required(kMemory.list).is_array()) {
    platform.memory_gb = json.real(kMemory.list, kMemory.min, kMemory.max);
    return;
  }
  if (!platform.grows_with_cell) {
    json.wrong("memory_gb must be a number where grows_with_cell is not true");
  }
  platform.memory_by_cpus = points_from(json, kMemory);
  platform.memory_gb = platform.memory_by_cpus.back().value;
}

Platform built_in(const PlatformFile& file) {
  return platform_from_json(nlohmann::json::parse(file.text), std::string(file.name));
}

}  // namespace

double in_proportion(const std::vector<PlatformPoint>& points, int at) {
  if (at <= points.front().at) return points.front().value;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const PlatformPoint &a = points[i - 1], &b = points[i];
    if (at > b.at) continue;
    return a.value + (b.value - a.value) * (at - a.at) / (b.at - a.at);
  }
  return points.back().value;
}

void Platform::set_memory(double gb) {
  memory_gb = gb;
  memory_by_cpus.clear();
}

Platform Platform::of_cell(int cpus) const {
  if (!grows_with_cell) return *this;
  Platform grown = *this;
  grown.grows_with_cell = false;
  grown.threads_per_core = std::min(threads_per_core, cpus);
  grown.cores = cells::cores_of(cpus, grown.threads_per_core);
  grown.node_gbs = std::min(node_gbs, grown.cores * core_gbs);
  if (!memory_by_cpus.empty()) grown.set_memory(in_proportion(memory_by_cpus, cpus));
  return grown;
}

double slowdown(const Platform& platform, const CostTable& costs, const LocalRank& local) {
  if (!platform.cpu) return 1;  // the table says what active cores and threads do to each other
  const PlatformCpu& cpu = *platform.cpu;
  const int busy = local.ranks * local.threads;  // hardware threads
  const double gflops = cpu.flops_per_cycle * cpu.ghz(std::min(busy, platform.cores));
  double shared = 1;
  for (int i = 0; i < local.threads; ++i) {
    // Thread t is on core t modulo the cores.
    const int before = (local.rank * local.threads + i) % platform.cores;
    const int on_core = (busy - before + platform.cores - 1) / platform.cores;
    if (on_core > 1) shared = std::max(shared, on_core / cpu.second_thread_gain);
  }
  return costs.alone().fma_gflops / gflops * shared;
}

std::vector<std::string> platform_names() {
  std::vector<std::string> names{kHere};
  for (const PlatformFile& file : platform_files()) names.emplace_back(file.name);
  return names;
}

Platform find_platform(const std::string& name, const CostTable& costs) {
  if (name == kHere) return machine_of_costs(costs);
  for (const PlatformFile& file : platform_files()) {
    if (file.name == name) return built_in(file);
  }
  if (!name.ends_with(".json") && name.find('/') == std::string::npos) {
    fail(ExitCode::usage,
         fmt::format("--platform {}: must be one of {}, or a platform file (.json){}", name,
                     join(platform_names(), ", "), did_you_mean(name, platform_names())));
  }
  return platform_from_json(read_json_file(name), name);
}

Json to_json(const Platform& platform) {
  Json json{
      {"format", kFormat},
      {"name", platform.name},
      {"description", platform.description},
      {"sources", platform.sources},
      {"nodes", platform.nodes},
      {"cores", platform.cores},
      {"threads_per_core", platform.threads_per_core},
      {kMemory.list, platform.memory_by_cpus.empty() ? Json(platform.memory_gb)
                                                     : to_json(platform.memory_by_cpus, kMemory)}};
  if (platform.grows_with_cell) json["grows_with_cell"] = true;
  if (platform.noise) json["noise"] = *platform.noise;
  if (platform.cpu) json["cpu"] = to_json(*platform.cpu);
  if (platform.gpus) json["gpu"] = to_json(*platform.gpus);
  json["memory"] = {{"core_gbs", platform.core_gbs},
                    {"node_gbs", platform.node_gbs},
                    {"latency_us", platform.node_latency_us}};
  if (platform.nodes > 1) {
    json["network"] = {{"gbps", platform.network_gbps},
                       {"latency_us", platform.network_latency_us},
                       {"efficiency", platform.network_efficiency}};
  }
  return json;
}

Platform platform_from_json(const nlohmann::json& json, const std::string& where) {
  const JsonObject object(json, where);
  object.require_format(kFormat);
  object.allow_only({"format", "name", "description", "sources", "nodes", "grows_with_cell",
                     "cores", "threads_per_core", "memory_gb", "noise", "cpu", "gpu", "memory",
                     "network"});
  Platform platform;
  platform.name = printable(object.text("name"));  // it is said on the terminal
  platform.description = object.text("description");
  platform.sources = object.texts("sources", 100);
  platform.nodes = object.whole("nodes", 1, 512);
  platform.cores = object.whole("cores", 1, 4096);
  platform.threads_per_core = object.whole("threads_per_core", 1, 8);
  if (object.has("grows_with_cell")) platform.grows_with_cell = object.truth("grows_with_cell");
  if (platform.grows_with_cell && platform.nodes > 1) {
    object.wrong(
        "grows_with_cell must be left out where nodes is more than 1: it is one machine "
        "that grows");
  }
  if (platform.grows_with_cell && !object.has("cpu")) {
    object.wrong(
        "grows_with_cell must have a cpu beside it, which says what two threads of a core "
        "do to each other");
  }
  read_memory(object, platform);
  if (object.has("noise")) platform.noise = object.real("noise", 0, 1);
  if (object.has("cpu")) platform.cpu = cpu_from(object.object("cpu"));
  if (object.has("gpu")) platform.gpus = gpu_node_from(object.object("gpu"));
  if (platform.gpus && (platform.cpu || platform.noise || platform.grows_with_cell)) {
    object.wrong(
        "gpu must have no cpu, noise or grows_with_cell beside it: what GPUs compute is in their "
        "costs");
  }
  const JsonObject memory = object.object("memory");
  memory.allow_only({"core_gbs", "node_gbs", "latency_us"});
  platform.core_gbs = memory.real("core_gbs", 0.001, 1e6);
  platform.node_gbs = memory.real("node_gbs", 0.001, 1e6);
  platform.node_latency_us = memory.real("latency_us", 0, 1e6);
  if (platform.nodes == 1) return platform;
  const JsonObject network = object.object("network");
  network.allow_only({"gbps", "latency_us", "efficiency"});
  platform.network_gbps = network.real("gbps", 0.001, 1e6);
  platform.network_latency_us = network.real("latency_us", 0, 1e7);
  platform.network_efficiency = network.real("efficiency", 0.01, 1);
  return platform;
}

}  // namespace cputrain::simulation
