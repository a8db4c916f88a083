#include "system/placement/machine_ranks.h"

#include <algorithm>
#include <cmath>

namespace cputrain::placement {

std::vector<int> distinct(const std::vector<int>& numbers) {
  const std::set<int> once(numbers.begin(), numbers.end());
  return {once.begin(), once.end()};
}

double MachineRanks::part_of(const RankPlace& place) const {
  double part = 0;
  for (const int core : distinct(place.core_of_cpu)) part += 1.0 / ranks_on_core.at(core);
  return part;
}

MachineRanks::MachineRanks(const std::vector<RankPlace>& ranks) {
  std::map<std::uint64_t, std::set<int>> cpus_of_group;
  for (const RankPlace& place : ranks) {
    cpus.insert(place.cpus.begin(), place.cpus.end());
    const std::vector<int> cores = distinct(place.core_of_cpu);
    for (const int core : cores) ++ranks_on_core[core];
    cpus_of_group[place.cpu_group].insert(place.cpus.begin(), place.cpus.end());
    groups[place.cpu_group].quota = place.cpu_quota;
    machine_cores = std::max(machine_cores, place.machine_cores);
    machine_cpus = std::max(machine_cpus, place.machine_cpus);
    numa_nodes = std::max(numa_nodes, place.numa_nodes);
    one_core_each = one_core_each && cores.size() == 1;
    user_binds = user_binds || place.user_binds;
  }
  for (const RankPlace& place : ranks) groups[place.cpu_group].cores += part_of(place);
  if (std::ranges::none_of(groups, [](const auto& group) { return group.second.quota > 0; }))
    return;
  for (const auto& [number, group] : groups) {
    quota += group.quota > 0 ? group.quota : static_cast<double>(cpus_of_group[number].size());
  }
}

double MachineRanks::capacity() const {
  const auto threads = static_cast<double>(cpus.size());
  return quota > 0 ? std::min(quota, threads) : threads;
}

int MachineRanks::share(const RankPlace& place) const {
  double part = part_of(place);
  const Group& group = groups.at(place.cpu_group);
  if (group.quota > 0 && group.quota < group.cores) part *= group.quota / group.cores;
  return std::max(1, static_cast<int>(std::floor(part + 1e-6)));  // 3 x 1/3 is 1
}

}  // namespace cputrain::placement
