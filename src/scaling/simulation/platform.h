#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scaling/cells/cells.h"
#include "scaling/simulation/cost_table.h"

namespace cputrain::simulation {

/// A figure of a platform that depends on a count. Points ascend; between two of them it lies in
/// proportion, before and behind them it is that of the nearest.
struct PlatformPoint {
  int at;
  double value;
};

/// Which share of its multiply-add peak a kind of core reaches in a training step with eight images
/// at once, as `bench step` says it: direct convolution counts, so it may pass 1.
struct PeakShare {
  std::string model{};  ///< of whose steps it is; empty: of any network
  int image_size = 0;
  double low = 0, likely = 0, high = 0;
  /// Costs of a processor with this word in its name are of that kind: what they have is likely.
  std::string kind{};
};

/// What a core computes, for machines other than the one whose costs were measured.
struct PlatformCpu {
  double flops_per_cycle = 0;        ///< a core's, float multiply-adds as two
  std::vector<PlatformPoint> clock;  ///< GHz by active cores
  double second_thread_gain = 1;     ///< what two threads of a core compute, by what one does
  /// Nothing: the same share of the peak as the core whose costs were measured.
  std::optional<PeakShare> share{};
  /// Part of its share that a core keeps where ranks have one thread; empty: all of it.
  std::vector<PlatformPoint> kept{};
};

/// The GPUs of a node, and what joins them with each other and with the host. All are alike.
struct GpuNode {
  std::string name;  ///< as costs call it: "H100"
  int per_node = 1;
  double memory_gb = 0;  ///< of each, 1e9 bytes
  /// What each GPU sends and receives at the same time in a ring of the node: the bus bandwidth of
  /// NCCL's tests.
  double ring_gbs = 0;
  double hop_us = 0;        ///< each step of a ring
  double sum_us = 0;        ///< each sum, however many GPUs
  double host_gbs = 0;      ///< from pinned memory to one GPU
  double all_host_gbs = 0;  ///< to all GPUs of the node at the same time
};

/// A kind of machine and how many of them stand on one network: a small JSON file.
struct Platform {
  std::string name, description;
  std::vector<std::string> sources;  ///< where the numbers are from

  int nodes = 1;  ///< at most
  /// Each cell has a machine of its own size: n CPUs are n hardware threads of as few cores as have
  /// them. The figures below are then those of the largest machine.
  bool grows_with_cell = false;
  int cores = 1, threads_per_core = 1;
  double memory_gb = 0;  ///< a node's, 1e9 bytes
  /// Memory of the machine of a cell with so many CPUs, where it grows with them; else empty.
  std::vector<PlatformPoint> memory_by_cpus;
  /// Standard deviation of a micro-batch's seconds, relative. Nothing: as measured with the costs.
  std::optional<double> noise;
  /// Nothing: as the machine whose costs were measured.
  std::optional<PlatformCpu> cpu;
  std::optional<GpuNode> gpus;        ///< what ranks compute on, where it is no cores
  double core_gbs = 0, node_gbs = 0;  ///< bandwidth of memory: most of a core, most of a node
  double node_latency_us = 0;         ///< a message's between ranks of a node
  double network_gbps = 0, network_latency_us = 0;
  double network_efficiency = 1;  ///< part of the network's bits that carry data

  int hardware_threads() const { return cores * threads_per_core; }
  /// With so many threads each, a hardware thread for each of them; or a GPU for each.
  int ranks_of_node(int threads = 1) const {
    return gpus ? gpus->per_node : hardware_threads() / threads;
  }
  int most_ranks(int threads = 1) const { return nodes * ranks_of_node(threads); }
  /// The same with so much memory, whatever a cell's CPUs.
  void set_memory(double gb) {
    memory_gb = gb;
    memory_by_cpus.clear();
  }
  /// The machines of a cell with so many CPUs: this platform, or one that has grown to them. Its
  /// memory has the bandwidth that its cores can take, at most the largest machine's.
  Platform of_cell(int cpus) const;
  /// As tables have it.
  cells::CellMachine machine() const;
};

/// How many times as long as in the table's measurement with one active core (with as many as are
/// active here, where the platform has no CPU of its own) a rank computes, at the table's share of
/// the peak; `rank` counts those of a node's team. Threads fill cores before they fill hardware
/// threads; the slowest of a rank's own ones decides.
double slowdown(const Platform&, const CostTable&, int rank, const Team& of_node);

/// The platform that is the machine of the costs.
inline constexpr const char* kHere = "here";
/// Those that are built in, by name: texts of src/scaling/simulation/platforms/NAME.json.
const std::map<std::string_view, std::string_view>& platform_files();
/// Names of those that are built in, `here` first.
std::vector<std::string> platform_names();
/// A name, or a file. `here` is the machine of the costs. Error(usage) for a word that is neither,
/// Error(data) for a file that is wrong.
Platform find_platform(const std::string& name_or_file, const CostTable&);

void fields_of_platform(JsonMembers&, Platform&);
nlohmann::ordered_json to_json(const Platform&);
Platform platform_from_json(const nlohmann::json&, const std::string& where);

/// Nodes that so many ranks fill.
int nodes_used(const Platform&, int ranks, int threads = 1);

}  // namespace cputrain::simulation
