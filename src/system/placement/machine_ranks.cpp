#include "system/placement/machine_ranks.h"

#include <algorithm>
#include <cmath>

namespace cputrain::placement {

std::vector<int> distinct(const std::vector<int>& numbers) {
  const std::set<int> once(numbers.begin(), numbers.end());
  return {once.begin(), once.end()};
}

MachineRanks::MachineRanks(const std::vector<RankPlace>& ranks) {
  for (const RankPlace& place : ranks) {
    cpus.insert(place.cpus.begin(), place.cpus.end());
    const std::vector<int> cores = distinct(place.core_of_cpu);
    for (const int core : cores) ++ranks_on_core[core];
    quota = place.cpu_quota;
    machine_cores = std::max(machine_cores, place.machine_cores);
    machine_cpus = std::max(machine_cpus, place.machine_cpus);
    numa_nodes = std::max(numa_nodes, place.numa_nodes);
    one_core_each = one_core_each && cores.size() == 1;
    user_binds = user_binds || place.user_binds;
  }
}

double MachineRanks::capacity() const {
  const auto threads = static_cast<double>(cpus.size());
  return quota > 0 ? std::min(quota, threads) : threads;
}

int MachineRanks::share(const RankPlace& place) const {
  double part = 0;
  for (const int core : distinct(place.core_of_cpu)) part += 1.0 / ranks_on_core.at(core);
  if (quota_binds()) part *= quota / cores();
  return std::max(1, static_cast<int>(std::floor(part + 1e-6)));  // 3 x 1/3 is 1
}

}  // namespace cputrain::placement
