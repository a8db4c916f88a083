#include "system/placement/placement.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include "core/text.h"
#include "system/placement/core_division.h"
#include "system/placement/machine_ranks.h"
#include "system/placement/placement_warnings.h"

namespace cputrain::placement {

namespace {

/// With fewer cores a rank cannot spare one for communication.
constexpr int kLeastToSpareOne = 4;
/// One thread copies and turns images about as fast as so many compute on them.
constexpr int kComputingForOneInput = 8;

using Positions = std::vector<std::size_t>;  // ranks' places in the node's list

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
  std::vector<CoreWish> wishes;
  for (const std::size_t i : group) {
    wishes.push_back({plans[i].threads, plans[i].communication_core});
  }
  const auto parts = divide_cores(places[group.front()], wishes);
  if (!parts) return;
  for (std::size_t k = 0; k < group.size(); ++k) {
    RankPlan& plan = plans[group[k]];
    plan.bind = (*parts)[k].cpus != plan.cpus;
    plan.cpus = (*parts)[k].cpus;
    plan.communication_cpu = (*parts)[k].communication_cpu;
  }
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

std::string summary(const MachineRanks& node, const std::vector<RankPlan>& plans) {
  std::string text = ranks_by_threads(plans) + " on " + counted(node.cores(), "core");
  if (node.hardware_threads() > node.cores()) {
    text += " (" + std::to_string(node.hardware_threads()) + " hardware threads)";
  }
  const auto all = [&](auto is) { return std::ranges::all_of(plans, is); };
  if (plans.size() > 1 && node.cores() > 1) {
    if (all([](const RankPlan& plan) { return plan.cores.size() == 1; })) {
      text += ", each bound to one core";
    } else if (all([](const RankPlan& plan) { return plan.bind; })) {
      text += ", each bound to cores of its own";
    }
  }
  if (std::ranges::any_of(plans, &RankPlan::communication_core)) {
    text += ", one core per rank kept for communication";
  }
  if (node.quota_binds()) text += ", limited to " + quota_text(node.quota) + " CPUs of time";
  return text;
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
  result.summary = summary(node, result.ranks);
  result.limits = thread_limits(places, result.ranks);
  result.warnings = placement_warnings(places, node, result.ranks, request);
  return result;
}

}  // namespace cputrain::placement
