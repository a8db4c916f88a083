#include "core/placement.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

namespace cputrain {

namespace {

std::string counted(int count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

/// A quota in CPUs as people write it: 3 or 2.5.
std::string as_text(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

int cores_of(const RankPlace& place) {
  return static_cast<int>(std::set<int>(place.core_of_cpu.begin(), place.core_of_cpu.end()).size());
}

/// All ranks of a machine together.
struct Crowd {
  std::set<int> cpus;
  std::map<int, int> ranks_on_core;  ///< how many ranks may run on each core
  double quota = 0;
  int machine_cores = 0;
  bool one_core_each = true;

  explicit Crowd(const std::vector<RankPlace>& ranks) {
    for (const RankPlace& place : ranks) {
      cpus.insert(place.cpus.begin(), place.cpus.end());
      for (int core : std::set<int>(place.core_of_cpu.begin(), place.core_of_cpu.end())) {
        ++ranks_on_core[core];
      }
      quota = place.cpu_quota;
      machine_cores = std::max(machine_cores, place.machine_cores);
      one_core_each = one_core_each && cores_of(place) == 1;
    }
  }

  int cores() const { return static_cast<int>(ranks_on_core.size()); }
  int hardware_threads() const { return static_cast<int>(cpus.size()); }
  bool quota_binds() const { return quota > 0 && quota < cores(); }
  /// How many threads can compute at once, and how many without sharing a core.
  double capacity() const { return quota > 0 ? std::min<double>(quota, cpus.size()) : cpus.size(); }
};

int threads_for(const RankPlace& place, const Crowd& crowd) {
  double part = 0;
  for (int core : std::set<int>(place.core_of_cpu.begin(), place.core_of_cpu.end())) {
    part += 1.0 / crowd.ranks_on_core.at(core);
  }
  if (crowd.quota_binds()) part *= crowd.quota / crowd.cores();
  return std::max(1, static_cast<int>(std::floor(part + 1e-6)));  // 3 x 1/3 is 1
}

std::string ranks_by_threads(const std::vector<int>& threads) {
  std::map<int, int, std::greater<>> ranks;
  for (int count : threads) ++ranks[count];
  std::string text;
  for (const auto& [count, number] : ranks) {
    text += (text.empty() ? "" : ", ") + counted(number, "rank") + " x " + counted(count, "thread");
  }
  return text;
}

std::string summary(const Crowd& crowd, const std::vector<int>& threads) {
  std::string text = ranks_by_threads(threads) + " on " + counted(crowd.cores(), "core");
  if (crowd.hardware_threads() > crowd.cores()) {
    text += " (" + std::to_string(crowd.hardware_threads()) + " hardware threads)";
  }
  if (crowd.one_core_each && threads.size() > 1 && crowd.cores() > 1) {
    text += ", each bound to one core";
  }
  if (crowd.quota_binds()) text += ", limited to " + as_text(crowd.quota) + " CPUs of time";
  return text;
}

std::string oversubscribed(const Crowd& crowd, const std::vector<int>& threads, int total) {
  const bool by_quota = crowd.capacity() < crowd.hardware_threads();
  std::string text =
      ranks_by_threads(threads) + " make " + counted(total, "thread") + " on " +
      (by_quota ? as_text(crowd.quota) + " CPUs' worth of time from the control group"
                : counted(crowd.hardware_threads(), "hardware thread")) +
      " (threads take turns, and all ranks wait for the one whose turn is last); try fewer ranks "
      "or fewer --threads";
  if (!by_quota && crowd.machine_cores > crowd.cores()) {
    text += ", or mpirun --bind-to none: the machine has " + counted(crowd.machine_cores, "core");
  }
  return text;
}

std::string cores_shared(const Crowd& crowd, const std::vector<int>& threads, int total) {
  return ranks_by_threads(threads) + " make " + counted(total, "thread") + " on " +
         counted(crowd.cores(), "physical core") +
         " (the hardware threads of a core share its vector units, so two compute little more than "
         "one); compare with " +
         counted(crowd.cores(), "thread") + " in all";
}

/// Open MPI binds each of one or two ranks to one core, which nobody expects of a program with
/// threads: the rest of the machine idles.
std::string cores_idle(const Crowd& crowd, int ranks) {
  return (ranks == 1 ? "the rank is bound to one core of "
                     : "two ranks are bound to one core each of ") +
         std::to_string(crowd.machine_cores) +
         " (the other cores idle; Open MPI binds like this where there are one or two ranks); try "
         "mpirun --bind-to none, or --map-by ppr:" +
         std::to_string(ranks) + ":node:PE=" + std::to_string(crowd.machine_cores / ranks);
}

/// The machine has room for the threads asked for, but this rank was not given it.
std::string mask_too_narrow(const RankPlace& place, int asked) {
  return "rank " + std::to_string(place.rank) + " may use " +
         counted(static_cast<int>(place.cpus.size()), "hardware thread") + " for " +
         counted(asked, "thread") +
         " (they take turns while other cores idle); try mpirun --bind-to none, or --map-by "
         "slot:PE=" +
         std::to_string(asked);
}

}  // namespace

Placement plan_threads(const std::vector<RankPlace>& ranks_of_this_node,
                       std::optional<int> asked_threads) {
  const Crowd crowd(ranks_of_this_node);
  Placement plan;
  for (const RankPlace& place : ranks_of_this_node) {
    plan.threads.push_back(asked_threads ? *asked_threads : threads_for(place, crowd));
  }
  plan.summary = summary(crowd, plan.threads);
  const int total = std::accumulate(plan.threads.begin(), plan.threads.end(), 0);
  if (total > crowd.capacity()) {
    plan.warnings.push_back(oversubscribed(crowd, plan.threads, total));
    return plan;
  }
  if (total > crowd.cores()) plan.warnings.push_back(cores_shared(crowd, plan.threads, total));
  if (!asked_threads && ranks_of_this_node.size() <= 2 && crowd.one_core_each &&
      crowd.machine_cores > crowd.cores()) {
    plan.warnings.push_back(cores_idle(crowd, static_cast<int>(plan.threads.size())));
  }
  if (const auto place = std::ranges::find_if(
          ranks_of_this_node,
          [&](const RankPlace& p) {
            return plan.threads[&p - ranks_of_this_node.data()] > static_cast<int>(p.cpus.size());
          });
      place != ranks_of_this_node.end()) {
    plan.warnings.push_back(mask_too_narrow(*place, *asked_threads));
  }
  return plan;
}

}  // namespace cputrain
