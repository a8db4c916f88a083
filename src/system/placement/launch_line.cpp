#include "system/placement/launch_line.h"

#include <algorithm>
#include <cmath>

namespace cputrain::placement {

namespace {

/// Cores of each rank, at least one.
int cores_each(const LaunchHost& host, int ranks) { return std::max(1, host.cores / ranks); }

bool fits_numa(const LaunchHost& host, int ranks) {
  return host.numa_nodes > 1 && ranks % host.numa_nodes == 0 && host.cores % host.numa_nodes == 0;
}

}  // namespace

std::string mpirun_options(const LaunchHost& host, int ranks) {
  const std::string np = "-np " + std::to_string(ranks);
  const bool quota = host.cpu_quota > 0 && host.cpu_quota < host.cores;
  if (ranks > host.hardware_threads) return np + " --oversubscribe --bind-to none";
  if (ranks > host.cores) return np + " --use-hwthread-cpus --bind-to hwthread";
  if (quota) return np + " --bind-to none";
  if (ranks == host.cores) return np + " --bind-to core";
  const std::string each = ":PE=" + std::to_string(cores_each(host, ranks));
  if (fits_numa(host, ranks)) {
    return np + " --map-by ppr:" + std::to_string(ranks / host.numa_nodes) + ":numa" + each +
           " --bind-to core";
  }
  return np + " --map-by slot" + each + " --bind-to core";
}

std::string mpirun_options(const LaunchHost& host, int ranks, int threads) {
  const std::string np = "-np " + std::to_string(ranks);
  const std::string each = ":PE=" + std::to_string(threads);
  const int cpus = ranks * threads;
  const bool quota = host.cpu_quota > 0 && host.cpu_quota < host.cores;
  if (cpus > host.hardware_threads) return np + " --oversubscribe --bind-to none";
  if (quota) return np + (ranks > host.cores ? " --oversubscribe" : "") + " --bind-to none";
  if (cpus > host.cores) {
    const std::string map = threads == 1 ? "" : " --map-by slot" + each;
    return np + " --use-hwthread-cpus" + map + " --bind-to hwthread";
  }
  if (fits_numa(host, ranks) && cpus / host.numa_nodes <= host.cores / host.numa_nodes) {
    return np + " --map-by ppr:" + std::to_string(ranks / host.numa_nodes) + ":numa" + each +
           " --bind-to core";
  }
  return np + (threads == 1 ? "" : " --map-by slot" + each) + " --bind-to core";
}

std::vector<LaunchLine> launch_lines(const LaunchHost& host, bool as_root, bool mpi) {
  const std::string program = "./cputrain ...";
  const bool quota = host.cpu_quota > 0 && host.cpu_quota < host.cores;
  const int cores =
      quota ? std::max(1, static_cast<int>(std::floor(host.cpu_quota))) : std::max(1, host.cores);
  if (!mpi || cores == 1) return {{program, "one process on all cores"}};
  const auto line = [&](int ranks) {
    return std::string("mpirun ") + (as_root ? "--allow-run-as-root " : "") +
           mpirun_options(host, ranks) + " " + program;
  };
  std::vector<LaunchLine> lines;
  lines.push_back({line(cores), quota ? "one rank for each CPU of the control group's quota"
                                      : "one rank a physical core"});
  if (!quota && host.hardware_threads > host.cores) {
    lines.push_back({line(host.hardware_threads), "one rank a hardware thread"});
  }
  if (!quota && host.numa_nodes > 1 && host.numa_nodes < host.cores) {
    lines.push_back({line(host.numa_nodes), "one rank a NUMA node, with threads"});
  }
  lines.push_back({program, "one process with a thread a core"});
  return lines;
}

}  // namespace cputrain::placement
