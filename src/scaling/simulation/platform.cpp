#include "scaling/simulation/platform.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/json_fields.h"
#include "core/text.h"

namespace cputrain::simulation {
namespace {

constexpr const char* kFormat = "cputrain platform 1";

double in_proportion(const std::vector<PlatformPoint>& points, int at) {
  if (at <= points.front().at) return points.front().value;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const PlatformPoint &a = points[i - 1], &b = points[i];
    if (at > b.at) continue;
    return a.value + (b.value - a.value) * (at - a.at) / (b.at - a.at);
  }
  return points.back().value;
}

/// The machine whose costs were measured: its bandwidth is what its cores reached.
Platform machine_of_costs(const CostTable& costs) {
  Platform platform;
  platform.name = kHere;
  platform.description = fmt::format("{}, {}", costs.cpu, counted(costs.cores, "core"));
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

/// `describe_value` is called with (JsonMembers&, double&).
void describe_points(JsonMembers& f, const char* list, std::vector<PlatformPoint>& points,
                     const char* at, const auto& describe_value) {
  f.objects(
      list, points, 1, 256,
      [&](JsonMembers& p, PlatformPoint& point) {
        p.need(at, point.at, 1, 1'000'000);
        describe_value(p, point.value);
        const bool first = points.size() < 2 || !p.file();
        if (!first && point.at <= points[points.size() - 2].at) {
          p.file()->wrong(std::string(at) + " must ascend");
        }
      },
      true);
}

void describe_share(JsonMembers& f, PeakShare& share) {
  constexpr double kLeast = 0.01, kMost = 100;
  f.may("model", share.model);
  f.may("image_size", share.image_size, 0, 16384);
  f.need("low", share.low, kLeast, kMost);
  f.need("likely", share.likely, share.low, kMost);
  f.need("high", share.high, share.likely, kMost);
  f.may("kind", share.kind);
}

void describe_cpu(JsonMembers& f, PlatformCpu& cpu) {
  f.need("flops_per_cycle", cpu.flops_per_cycle, 0.01, 1e6);
  describe_points(f, "clock_ghz", cpu.clock, "active_cores",
                  [](JsonMembers& p, double& value) { p.need("ghz", value, 0.01, 100); });
  f.need("second_thread_gain", cpu.second_thread_gain, 0.5, 8);
  f.rare_object("share_of_peak", cpu.share, describe_share);
  if (f.file() ? f.file()->has("share_kept") : !cpu.kept.empty()) {
    describe_points(f, "share_kept", cpu.kept, "active_cores",
                    [](JsonMembers& p, double& value) { p.need("part", value, 0.01, 1); });
  }
}

void describe_gpus(JsonMembers& f, GpuNode& node) {
  constexpr double kMostGbs = 1e6, kMostMicroseconds = 1e6;
  f.need("name", node.name);
  f.need("per_node", node.per_node, 1, 1024);
  f.need("memory_gb", node.memory_gb, 0.001, 1e6);
  f.need("ring_gbs", node.ring_gbs, 0.001, kMostGbs);
  f.need("hop_us", node.hop_us, 0, kMostMicroseconds);
  f.need("sum_us", node.sum_us, 0, kMostMicroseconds);
  f.need("host_gbs", node.host_gbs, 0.001, kMostGbs);
  f.need("all_host_gbs", node.all_host_gbs, node.host_gbs, kMostGbs);
  if (f.file()) node.name = printable(node.name);  // it is printed on the terminal
}

/// A number, or a list by CPUs of a machine that grows with them.
void describe_memory(JsonMembers& f, Platform& platform) {
  constexpr double kLeast = 0.001, kMost = 1e6;
  const bool is_list =
      f.file() ? f.file()->required("memory_gb").is_array() : !platform.memory_by_cpus.empty();
  if (!is_list) return f.need("memory_gb", platform.memory_gb, kLeast, kMost);
  if (f.file() && !f.file()->truth("grows_with_cell", false)) {
    f.file()->wrong("memory_gb must be a number where grows_with_cell is not true");
  }
  describe_points(f, "memory_gb", platform.memory_by_cpus, "cpus",
                  [](JsonMembers& p, double& value) { p.need("gb", value, kLeast, kMost); });
  platform.memory_gb = platform.memory_by_cpus.back().value;
}

void check(const Platform& platform, const JsonFields& file) {
  if (platform.grows_with_cell && platform.nodes > 1) {
    file.wrong(
        "grows_with_cell must be left out where nodes is more than 1: it is one machine that "
        "grows");
  }
  if (platform.grows_with_cell && !platform.cpu) {
    file.wrong(
        "grows_with_cell must have a cpu beside it, which says what two threads of a core do to "
        "each other");
  }
  if (platform.gpus && (platform.cpu || platform.noise || platform.grows_with_cell)) {
    file.wrong(
        "gpu must have no cpu, noise or grows_with_cell beside it: what GPUs compute is in their "
        "costs");
  }
  file.end({"network"});
}

}  // namespace

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

cells::CellMachine Platform::machine() const {
  return {.cpu = description,
          .mpi = gpus ? "" : "SimGrid SMPI",
          .platform = name,
          .cores = cores,
          .hardware_threads = hardware_threads(),
          .cpus_per_core = grows_with_cell ? threads_per_core : 0,
          .memory_bytes = memory_gb * 1e9};
}

double slowdown(const Platform& platform, const CostTable& costs, int rank, const Team& of_node) {
  if (!platform.cpu) return 1;  // the table says what active cores and threads do to each other
  const PlatformCpu& cpu = *platform.cpu;
  const int busy = of_node.ranks * of_node.threads;  // hardware threads
  const int active = std::min(busy, platform.cores);
  // What threads of a rank lose to each other is in the costs.
  const double kept = cpu.kept.empty() || of_node.threads > 1 ? 1 : in_proportion(cpu.kept, active);
  const double gflops = cpu.flops_per_cycle * in_proportion(cpu.clock, active) * kept;
  double shared = 1;
  for (int i = 0; i < of_node.threads; ++i) {
    // Thread t is on core t modulo the cores.
    const int before = (rank * of_node.threads + i) % platform.cores;
    const int on_core = (busy - before + platform.cores - 1) / platform.cores;
    if (on_core > 1) shared = std::max(shared, on_core / cpu.second_thread_gain);
  }
  return costs.alone().fma_gflops / gflops * shared;
}

int nodes_used(const Platform& platform, int ranks, int threads) {
  const int of_a_node = platform.ranks_of_node(threads);
  return (ranks + of_a_node - 1) / of_a_node;
}

std::vector<std::string> platform_names() {
  std::vector<std::string> names{kHere};
  for (const auto& [name, text] : platform_files()) names.emplace_back(name);
  return names;
}

Platform find_platform(const std::string& name, const CostTable& costs) {
  if (name == kHere) return machine_of_costs(costs);
  if (const auto file = platform_files().find(name); file != platform_files().end()) {
    return platform_from_json(nlohmann::json::parse(file->second), name);
  }
  if (!name.ends_with(".json") && name.find('/') == std::string::npos) {
    fail(ExitCode::usage, "--platform {}: must be one of {}, or a platform file (.json){}", name,
         join(platform_names(), ", "), did_you_mean(name, platform_names()));
  }
  return platform_from_json(read_file(name), name);
}

void fields_of_platform(JsonMembers& f, Platform& platform) {
  f.format(kFormat);
  f.need("name", platform.name);
  f.need("description", platform.description);
  f.need("sources", platform.sources, 100);
  f.need("nodes", platform.nodes, 1, 512);
  f.need("cores", platform.cores, 1, 4096);
  f.need("threads_per_core", platform.threads_per_core, 1, 8);
  describe_memory(f, platform);
  f.rare("grows_with_cell", platform.grows_with_cell);
  f.rare("noise", platform.noise, 0, 1);
  f.rare_object("cpu", platform.cpu, describe_cpu);
  f.rare_object("gpu", platform.gpus, describe_gpus);
  f.object(
      "memory", platform,
      [](JsonMembers& m, Platform& p) {
        m.need("core_gbs", p.core_gbs, 0.001, 1e6);
        m.need("node_gbs", p.node_gbs, 0.001, 1e6);
        m.need("latency_us", p.node_latency_us, 0, 1e6);
      },
      true);
  if (f.file()) {
    platform.name = printable(platform.name);  // it is printed on the terminal
    check(platform, *f.file());
  }
  if (platform.nodes == 1) return;
  f.object(
      "network", platform,
      [](JsonMembers& n, Platform& p) {
        n.need("gbps", p.network_gbps, 0.001, 1e6);
        n.need("latency_us", p.network_latency_us, 0, 1e7);
        n.need("efficiency", p.network_efficiency, 0.01, 1);
      },
      true);
}

nlohmann::ordered_json to_json(const Platform& platform) {
  return json_of(platform, fields_of_platform);
}

Platform platform_from_json(const nlohmann::json& json, const std::string& where) {
  return value_of<Platform>({json, printable(where), kFileRemedy}, fields_of_platform);
}

}  // namespace cputrain::simulation
