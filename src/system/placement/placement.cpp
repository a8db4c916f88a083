#include "system/placement/placement.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace cputrain::placement {
namespace {

/// With fewer cores a rank cannot spare one for communication.
constexpr int kLeastToSpareOne = 4;
/// One thread copies and turns images about as fast as so many compute on them.
constexpr int kComputingForOneInput = 8;

using Positions = std::vector<std::size_t>;  // ranks' places in the node's list

/// Different numbers of a list, ascending.
std::vector<int> distinct(const std::vector<int>& numbers) {
  const std::set<int> once(numbers.begin(), numbers.end());
  return {once.begin(), once.end()};
}

/// Threads, and whether a core is kept free; the mask is still the launcher's.
RankPlan first_plan(const RankPlace& place, const MachineRanks& node,
                    const PlacementRequest& request, int hosts) {
  RankPlan plan;
  plan.rank = place.rank;
  plan.host = place.host;
  plan.cpus = place.cpus;
  const int share = node.share(place);
  plan.threads = request.threads.value_or(share);
  plan.communication_core = hosts > 1 && share >= kLeastToSpareOne && !node.quota_binds() &&
                            (!request.threads || plan.threads < share);
  if (plan.communication_core && !request.threads) --plan.threads;
  if (place.team_limit > 0) plan.held_back = std::max(0, plan.threads - place.team_limit);
  plan.threads -= plan.held_back;
  return plan;
}

/// Ranks by mask; nothing where masks overlap without being the same, which cannot be divided.
std::vector<Positions> groups_of(const std::vector<RankPlace>& places) {
  std::map<std::vector<int>, Positions> by_mask;
  for (std::size_t i = 0; i < places.size(); ++i) by_mask[places[i].cpus].push_back(i);
  std::set<int> seen;
  std::vector<Positions> groups;
  for (auto& [mask, positions] : by_mask) {
    for (const int cpu : mask) {
      if (!seen.insert(cpu).second) return {};
    }
    groups.push_back(std::move(positions));
  }
  return groups;
}

/// A machine that this job fills has no cores left for others, so that binding harms no other job.
bool fills(const MachineRanks& node, const std::vector<RankPlan>& plans) {
  int used = 0;
  for (const RankPlan& plan : plans) used += plan.threads + (plan.communication_core ? 1 : 0);
  const int ranks = static_cast<int>(plans.size());
  return ranks > 1 && node.cores() == node.machine_cores && node.machine_cores - used < ranks;
}

void divide(const std::vector<RankPlace>& places, const Positions& group,
            std::vector<RankPlan>& plans) {
  const RankPlace& mask = places[group.front()];
  std::vector<RankPlan*> ranks;
  for (const std::size_t i : group) ranks.push_back(&plans[i]);
  if (!divide_cores(mask, ranks)) return;
  for (RankPlan* plan : ranks) plan->bind = plan->cpus != mask.cpus;
}

/// Where the hardware threads of the plan lie; input runs on what computing leaves idle there.
void complete(RankPlan& plan, const RankPlace& place, const PlacementRequest& request) {
  std::vector<int> cores, numa;
  for (std::size_t i = 0; i < place.cpus.size(); ++i) {
    if (!std::ranges::binary_search(plan.cpus, place.cpus[i])) continue;
    cores.push_back(place.core_of_cpu[i]);
    numa.push_back(place.numa_of_cpu[i]);
  }
  plan.cores = distinct(cores);
  plan.numa = distinct(numa);
  const int idle = static_cast<int>(plan.cpus.size()) - plan.threads;
  const int useful = std::max(1, plan.threads / kComputingForOneInput);
  plan.input_threads = request.io_threads.value_or(std::clamp(idle, 1, useful));
}

using Unit = std::vector<int>;    // the hardware threads that are given away together
using Shelf = std::vector<Unit>;  // what a NUMA node has left, in the order of its cores
using Shelves = std::vector<Shelf>;

/// A unit a core, or one a hardware thread.
Shelves shelves_of(const RankPlace& mask, bool whole_cores) {
  std::map<int, std::map<int, Unit>> cores;  // by NUMA node, by core
  for (std::size_t i = 0; i < mask.cpus.size(); ++i) {
    cores[mask.numa_of_cpu[i]][mask.core_of_cpu[i]].push_back(mask.cpus[i]);
  }
  Shelves shelves;
  for (const auto& [numa, by_core] : cores) {
    Shelf& shelf = shelves.emplace_back();
    for (const auto& [core, cpus] : by_core) {
      if (whole_cores) {
        shelf.push_back(cpus);
      } else {
        for (const int cpu : cpus) shelf.push_back({cpu});
      }
    }
  }
  return shelves;
}

/// Moves up to `count` units from the front of the shelf.
void take(Shelf& shelf, std::size_t count, std::vector<Unit>& taken) {
  const auto end = shelf.begin() + static_cast<std::ptrdiff_t>(std::min(count, shelf.size()));
  taken.insert(taken.end(), shelf.begin(), end);
  shelf.erase(shelf.begin(), end);
}

/// From the preferred shelf, else from the first with room, else from several.
std::vector<Unit> take_near(Shelves& shelves, std::size_t preferred, std::size_t count) {
  std::vector<Unit> taken;
  for (std::size_t i = 0; i < shelves.size(); ++i) {
    Shelf& shelf = shelves[(preferred + i) % shelves.size()];
    if (shelf.size() < count) continue;
    take(shelf, count, taken);
    return taken;
  }
  for (std::size_t i = 0; i < shelves.size(); ++i) {
    take(shelves[(preferred + i) % shelves.size()], count - taken.size(), taken);
  }
  return taken;
}

void give(std::vector<Unit> units, RankPlan& rank) {
  if (rank.communication_core) {
    rank.communication_cpu = units.back().front();
    units.pop_back();
  }
  rank.cpus.clear();
  for (const Unit& unit : units) rank.cpus.insert(rank.cpus.end(), unit.begin(), unit.end());
  std::ranges::sort(rank.cpus);
}

}  // namespace

Placement plan_node(const std::vector<RankPlace>& places, const PlacementRequest& request,
                    int hosts) {
  const MachineRanks node(places);
  Placement result;
  for (const RankPlace& place : places) {
    result.ranks.push_back(first_plan(place, node, request, hosts));
  }
  const bool may_bind = !node.user_binds && !node.quota_binds();
  if (may_bind && request.bind.value_or(fills(node, result.ranks))) {
    for (const Positions& group : groups_of(places)) divide(places, group, result.ranks);
  }
  for (std::size_t i = 0; i < places.size(); ++i) complete(result.ranks[i], places[i], request);
  for (const RankPlan& plan : result.ranks) result.crowding += plan.threads / node.capacity();
  describe(places, node, request, result);
  return result;
}

bool divide_cores(const RankPlace& mask, const std::vector<RankPlan*>& ranks) {
  const auto units_of = [](const RankPlan& rank) {
    return static_cast<std::size_t>(rank.threads + (rank.communication_core ? 1 : 0));
  };
  std::size_t wanted = 0;
  for (const RankPlan* rank : ranks) wanted += units_of(*rank);
  if (wanted > mask.cpus.size()) return false;
  const std::set<int> cores(mask.core_of_cpu.begin(), mask.core_of_cpu.end());
  Shelves shelves = shelves_of(mask, wanted <= cores.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::size_t preferred = i * shelves.size() / ranks.size();
    give(take_near(shelves, preferred, units_of(*ranks[i])), *ranks[i]);
  }
  return true;
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
