#include "system/placement/placement.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "core/text.h"
#include "system/placement/launch_words.h"

namespace cputrain::placement {
namespace {

/// A quota in CPUs as people write it: 3 or 2.5.
std::string quota_text(double cpus) {
  std::ostringstream text;
  text << cpus;
  return text.str();
}

/// "2 ranks x 12 threads": the ranks of a machine by their threads.
std::string ranks_by_threads(const std::vector<RankPlan>& plans) {
  std::map<int, int, std::greater<>> ranks;
  for (const RankPlan& plan : plans) ++ranks[plan.threads];
  std::string text;
  for (const auto& [count, number] : ranks) {
    text += (text.empty() ? "" : ", ") + counted(number, "rank") + " x " + counted(count, "thread");
  }
  return text;
}

std::string summary_of(const MachineRanks& node, const std::vector<RankPlan>& plans) {
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

/// A line for each reason why ranks compute on fewer threads than they were to.
std::vector<std::string> thread_limits(const std::vector<RankPlace>& places,
                                       const std::vector<RankPlan>& plans) {
  std::map<std::string, std::vector<RankPlan>> by_reason;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].held_back > 0) by_reason[places[i].team_limited_by].push_back(plans[i]);
  }
  std::vector<std::string> lines;
  for (const auto& [reason, limited] : by_reason) {
    const RankPlan& first = limited.front();
    lines.push_back(ranks_by_threads(limited) + ", not " +
                    std::to_string(first.threads + first.held_back) + ": " + reason +
                    " allows no more (steps take longer); unset it or raise it for more threads");
  }
  return lines;
}

/// One machine's plan under the eye of a critic.
struct Review {
  const std::vector<RankPlace>& places;
  const MachineRanks& node;
  const std::vector<RankPlan>& plans;
  int total;  ///< threads that compute, over all ranks

  LaunchHost host() const {
    return {node.machine_cores, std::max(node.machine_cpus, node.machine_cores), node.numa_nodes,
            node.quota};
  }
  std::string mpirun(int ranks) const { return "mpirun " + mpirun_options(host(), ranks); }
  int ranks() const { return static_cast<int>(plans.size()); }
  const Binder& binder() const { return places.front().binder; }
  /// Ranks started otherwise do not help where OpenMP leaves out what they were given.
  std::string unless_openmp(const std::string& remedy) const {
    return binder().kind == Binder::Kind::openmp ? binder().remedy() : remedy;
  }
};

std::string oversubscribed(const Review& r) {
  const bool by_quota = r.node.capacity() < r.node.hardware_threads();
  const std::string text =
      too_many_threads(r.node, r.plans) + "; try fewer ranks or fewer --threads";
  if (!by_quota && r.node.machine_cores > r.node.cores()) {
    return text + ", or " + r.binder().remedy() + ": the machine has " +
           counted(r.node.machine_cores, "core");
  }
  return text + ": " + r.mpirun(std::max(1, std::min(r.node.cores(), int(r.node.capacity()))));
}

std::string cores_shared(const Review& r) {
  return ranks_by_threads(r.plans) + " make " + counted(r.total, "thread") + " on " +
         counted(r.node.cores(), "physical core") +
         " (the hardware threads of a core share its vector units, so two compute little more than "
         "one); compare with " +
         counted(r.node.cores(), "thread") + " in all: " + r.mpirun(r.node.cores());
}

/// Two ranks whose masks are one and the same core while others have none.
std::optional<std::string> two_on_one_core(const Review& r) {
  std::map<int, std::vector<int>> ranks_of;
  for (std::size_t i = 0; i < r.plans.size(); ++i) {
    if (r.plans[i].cores.size() == 1) {
      ranks_of[r.plans[i].cores[0]].push_back(r.plans[i].rank);
    }
  }
  for (const auto& [core, ranks] : ranks_of) {
    if (ranks.size() < 2 || r.total > r.node.machine_cores) continue;
    return "ranks " + std::to_string(ranks[0]) + " and " + std::to_string(ranks[1]) +
           " share physical core " + std::to_string(core) +
           " while others are free (each gets half of its vector units, and all ranks wait for "
           "the slowest); try " +
           r.unless_openmp(r.mpirun(r.ranks()));
  }
  return std::nullopt;
}

/// OpenMP binds threads of ranks that have the same hardware threads in the same order, from the
/// first one on.
std::optional<std::string> same_cores_by_openmp(const Review& r) {
  std::map<std::vector<int>, int> first_with;
  for (const RankPlace& place : r.places) {
    const auto [other, fresh] = first_with.try_emplace(place.cpus, place.rank);
    if (fresh || !place.binder.openmp_binds()) continue;
    const Binder by = place.binder.by_openmp();
    return "OpenMP binds threads of ranks " + std::to_string(other->second) + " and " +
           std::to_string(place.rank) + " to the same cores (they take turns while others idle; " +
           by.reason() + "); try " + by.remedy();
  }
  return std::nullopt;
}

/// Open MPI binds each of one or two ranks to one core. With threads that is not what users expect:
/// the rest of the machine idles.
std::string bound_to_one_core(const Review& r) {
  const std::string cores = std::to_string(r.node.machine_cores / r.ranks());
  return (r.ranks() == 1 ? "the rank is bound to one core of "
                         : "two ranks are bound to one core each of ") +
         std::to_string(r.node.machine_cores) + " (the other cores idle; " + r.binder().reason() +
         "); try " + r.binder().remedy("ppr:" + std::to_string(r.ranks()) + ":node:PE=" + cores);
}

/// More than an eighth of the machine has nothing to do, and that was not asked for.
std::string cores_idle(const Review& r, int used) {
  const std::string all = r.mpirun(r.node.machine_cores);
  return counted(r.node.machine_cores - used, "core") + " of " +
         std::to_string(r.node.machine_cores) + " idle (" + ranks_by_threads(r.plans) +
         " leave them unused); try " +
         (r.node.cores() < r.node.machine_cores ? r.unless_openmp(all) : all);
}

/// The machine has room for the threads asked for, but this rank was not given it.
std::string mask_too_narrow(const RankPlace& place, int asked) {
  return "rank " + std::to_string(place.rank) + " may use " +
         counted(static_cast<int>(place.cpus.size()), "hardware thread") + " for " +
         counted(asked, "thread") + " (they take turns while other cores idle; " +
         place.binder.reason() + "); try " +
         place.binder.remedy("slot:PE=" + std::to_string(asked));
}

/// Cores of the NUMA node of this mask that has most of them.
int largest_numa_part(const RankPlace& place) {
  std::map<int, std::set<int>> cores;
  for (std::size_t i = 0; i < place.cpus.size(); ++i) {
    cores[place.numa_of_cpu[i]].insert(place.core_of_cpu[i]);
  }
  int most = 0;
  for (const auto& [numa, list] : cores) {
    most = std::max(most, static_cast<int>(list.size()));
  }
  return most;
}

/// A rank on several NUMA nodes although it would fit into one, or although another number of
/// ranks would divide the nodes evenly. One process over the whole machine is no mistake.
std::optional<std::string> remote_memory(const Review& r) {
  const int nodes = r.node.numa_nodes;
  for (std::size_t i = 0; i < r.plans.size(); ++i) {
    const RankPlan& plan = r.plans[i];
    if (plan.numa.size() < 2) continue;
    const bool fits = plan.threads <= largest_numa_part(r.places[i]);
    if (!fits && r.ranks() == 1) continue;
    const std::string what = "rank " + std::to_string(plan.rank) + " with " +
                             counted(plan.threads, "thread") + " lies on " +
                             counted(static_cast<int>(plan.numa.size()), "NUMA node") +
                             " (memory of another node is slower, and all ranks wait for the "
                             "slowest); try ";
    if (r.ranks() % nodes == 0 || r.ranks() == 1) {
      if (r.binder().openmp_binds()) return what + r.binder().by_openmp().remedy() + ", and --bind";
      return what + "--bind" + (r.ranks() > 1 ? ", or " + r.mpirun(r.ranks()) : std::string());
    }
    const int up = (r.ranks() / nodes + 1) * nodes;
    return what + "a number of ranks that the " + std::to_string(nodes) +
           " nodes divide evenly: " + r.mpirun(up);
  }
  return std::nullopt;
}

/// What is wrong with a plan, each "what (why it matters); what to try".
std::vector<std::string> warnings_of(const std::vector<RankPlace>& places, const MachineRanks& node,
                                     const std::vector<RankPlan>& plans,
                                     const PlacementRequest& request) {
  int total = 0, used = 0;
  for (const RankPlan& plan : plans) {
    total += plan.threads;
    used += plan.threads + (plan.communication_core ? 1 : 0);
  }
  const Review r{places, node, plans, total};
  if (total > node.capacity()) return {oversubscribed(r)};
  std::vector<std::string> warnings;
  if (const auto same = same_cores_by_openmp(r)) {
    warnings.push_back(*same);
  } else if (const auto two = two_on_one_core(r)) {
    warnings.push_back(*two);
  } else if (total > node.cores()) {
    warnings.push_back(cores_shared(r));
  }
  const bool held_back =
      std::ranges::any_of(plans, [](const RankPlan& p) { return p.held_back > 0; });
  const bool few_bound =
      plans.size() <= 2 && node.one_core_each && node.machine_cores > node.cores();
  if (!request.threads && few_bound) {
    warnings.push_back(bound_to_one_core(r));
  } else if (!request.threads && !held_back && !node.quota_binds() &&
             8 * (node.machine_cores - used) > node.machine_cores) {
    warnings.push_back(cores_idle(r, used));
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].threads <= static_cast<int>(places[i].cpus.size())) continue;
    warnings.push_back(mask_too_narrow(places[i], plans[i].threads));
    break;
  }
  if (const auto remote = remote_memory(r)) warnings.push_back(*remote);
  return warnings;
}

}  // namespace

std::string too_many_threads(const MachineRanks& node, const std::vector<RankPlan>& plans) {
  int threads = 0;
  for (const RankPlan& plan : plans) threads += plan.threads;
  return ranks_by_threads(plans) + " make " + counted(threads, "thread") + " on " +
         (node.capacity() < node.hardware_threads()
              ? quota_text(node.quota) + " CPUs' worth of time from the control group"
              : counted(node.hardware_threads(), "hardware thread")) +
         " (threads take turns, and all ranks wait for the one whose turn is last)";
}

void describe(const std::vector<RankPlace>& places, const MachineRanks& node,
              const PlacementRequest& request, Placement& plan) {
  plan.lines = {summary_of(node, plan.ranks)};
  plan.limits = thread_limits(places, plan.ranks);
  plan.warnings = warnings_of(places, node, plan.ranks, request);
}

}  // namespace cputrain::placement
