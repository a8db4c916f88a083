#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <sstream>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "system/placement/placement.h"

namespace cputrain::placement {
namespace {

constexpr const char* kUnknown = "-";  // in the place of a word

/// The threads of a machine and their ranks are what one line is about: machines whose text is the
/// same share it.
struct SharedText {
  std::string text;
  std::vector<std::string> hosts;
};

void add(std::vector<SharedText>& texts, const std::string& text, const std::string& host) {
  auto shared = std::ranges::find(texts, text, &SharedText::text);
  if (shared == texts.end()) shared = texts.insert(shared, {text, {}});
  shared->hosts.push_back(host);
}

/// "a, b, c, ..."
std::string names_text(const std::vector<std::string>& names, const std::string& between) {
  const std::vector<std::string> some(
      names.begin(), names.begin() + std::min<std::ptrdiff_t>(3, std::ssize(names)));
  return join(some, between) + (names.size() > 3 ? between + "..." : "");
}

/// "host a", "5 hosts (a, b, c, ...)".
std::string hosts_text(const std::vector<std::string>& hosts) {
  if (hosts.size() == 1) return "host " + hosts[0];
  return std::to_string(hosts.size()) + " hosts (" + names_text(hosts, ", ") + ")";
}

std::vector<std::string> lines(const std::vector<SharedText>& texts) {
  std::vector<std::string> result;
  for (const SharedText& shared : texts) {
    const std::string each = shared.hosts.size() > 1 ? ", each: " : ": ";
    result.push_back(hosts_text(shared.hosts) + each + shared.text);
  }
  return result;
}

/// The ranks of a machine that share memory.
struct Node {
  std::vector<RankPlace> places;
  std::vector<std::size_t> positions;  ///< where the ranks are in the job
  std::vector<RankPlan> plans;

  /// "a"; "a+b" where containers of the machine have names of their own.
  std::string name() const {
    std::vector<std::string> names;
    for (const RankPlace& place : places) {
      const std::string name = printable(place.host);
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    return names_text(names, "+");
  }
};

/// Nodes of one system whose threads are more than its cores, each of them counting its own.
void add_crowds(const std::vector<Node>& nodes, Placement& job) {
  std::map<std::string, std::vector<const Node*>> systems;
  for (const Node& node : nodes) systems[node.places.front().kernel].push_back(&node);
  for (const auto& [kernel, of_system] : systems) {
    if (of_system.size() < 2 || kernel == kUnknown) continue;
    std::vector<std::string> names;
    std::vector<RankPlace> places;
    std::vector<RankPlan> plans;
    for (const Node* node : of_system) {
      names.push_back(node->name());
      places.insert(places.end(), node->places.begin(), node->places.end());
      plans.insert(plans.end(), node->plans.begin(), node->plans.end());
    }
    const MachineRanks machine(places);
    int threads = 0;
    for (const RankPlan& plan : plans) threads += plan.threads;
    job.crowding = std::max(job.crowding, threads / machine.capacity());
    if (threads <= machine.capacity()) continue;
    job.warnings.push_back(hosts_text(names) +
                           " are one machine, by its boot id: " + too_many_threads(machine, plans) +
                           "; try fewer --threads, or fewer ranks");
  }
}

/// "cores 0-3 (NUMA node 0, hardware threads 0-7)".
std::string cores_text(const RankPlan& plan) {
  const auto numbered = [](const char* what, const std::vector<int>& numbers) {
    return fmt::format("{}{} {}", what, numbers.size() == 1 ? "" : "s", range_text(numbers));
  };
  return fmt::format("{} ({}, {})", numbered("core", plan.cores), numbered("NUMA node", plan.numa),
                     numbered("hardware thread", plan.cpus));
}

/// What is in the map behind "rank 3"; `cores` are those of the rank, or in words.
std::string place_text(const RankPlan& plan, const std::string& cores) {
  std::string line = fmt::format(" on {}: {}, {}, {} for input", plan.host, cores,
                                 counted(plan.threads, "thread"), plan.input_threads);
  if (plan.communication_cpu) {
    line += ", communication on hardware thread " + std::to_string(*plan.communication_cpu);
  } else if (plan.communication_core) {
    line += ", a core kept for communication";
  }
  return line + (plan.bind ? ", bound" : "");
}

std::string place_text(const RankPlan& plan) { return place_text(plan, cores_text(plan)); }

/// Whether a rank has what the one before it has, but for its cores, which are the next ones.
bool lies_behind(const RankPlan& rank, const RankPlan& before) {
  const auto of = [](const RankPlan& p) {
    return std::tuple(p.host, p.cores.size(), p.cpus.size(), p.threads, p.input_threads, p.bind,
                      p.communication_core);
  };
  return !rank.cores.empty() && of(rank) == of(before) && rank.cores.front() > before.cores.back();
}

/// The same for ranks of which each lies behind the one before it.
std::string place_in_order(std::span<const RankPlan> ranks) {
  RankPlan all = ranks.front();
  for (const RankPlan& rank : ranks.subspan(1)) {
    all.cores.insert(all.cores.end(), rank.cores.begin(), rank.cores.end());
    all.cpus.insert(all.cpus.end(), rank.cpus.begin(), rank.cpus.end());
    all.numa.insert(all.numa.end(), rank.numa.begin(), rank.numa.end());
  }
  for (std::vector<int>* list : {&all.cpus, &all.numa}) {
    std::ranges::sort(*list);
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  if (all.communication_cpu) all.communication_cpu.reset();  // each has its own
  return place_text(all, cores_text(all) + ", in this order " +
                             counted(ranks.front().cores.size(), "core") + " each");
}

}  // namespace

RankPlace place_of(int rank, const Machine& machine, bool user_binds, const Binder& binder) {
  return {rank,
          machine.host,
          machine.kernel.empty() ? kUnknown : machine.kernel,
          machine.cores,
          machine.hardware_threads,
          machine.numa_nodes,
          machine.cpu_quota,
          machine.cpu_group,
          machine.team_limit,
          machine.team_limited_by.empty() ? kUnknown : machine.team_limited_by,
          user_binds,
          binder,
          machine.allowed_cpus,
          machine.core_of_cpu,
          machine.numa_of_cpu};
}

std::string to_text(const RankPlace& place) {
  std::ostringstream text;
  text.precision(17);
  text << place.rank << ' ' << place.kernel << ' ' << place.machine_cores << ' '
       << place.machine_cpus << ' ' << place.numa_nodes << ' ' << place.cpu_quota << ' '
       << place.cpu_group << ' ' << place.team_limit << ' ' << place.team_limited_by << ' '
       << place.user_binds << ' ' << static_cast<int>(place.binder.kind) << ' '
       << place.binder.variables << ' ' << place.binder.openmp << ' ' << place.cpus.size();
  for (const auto* numbers : {&place.cpus, &place.core_of_cpu, &place.numa_of_cpu}) {
    for (const int number : *numbers) text << ' ' << number;
  }
  text << ' ' << place.host;  // last, since it may have blanks
  return text.str();
}

RankPlace rank_place_from(std::string_view line) {
  std::istringstream text{std::string(line)};
  RankPlace place;
  std::size_t count = 0;
  int binder = 0;
  text >> place.rank >> place.kernel >> place.machine_cores >> place.machine_cpus >>
      place.numa_nodes >> place.cpu_quota >> place.cpu_group >> place.team_limit >>
      place.team_limited_by >> place.user_binds >> binder >> place.binder.variables >>
      place.binder.openmp >> count;
  place.binder.kind = static_cast<Binder::Kind>(binder);
  const auto read = [&](std::vector<int>& numbers) {
    for (int number = 0; text && numbers.size() < count && text >> number;) {
      numbers.push_back(number);
    }
  };
  read(place.cpus);
  read(place.core_of_cpu);
  read(place.numa_of_cpu);
  text.ignore(1);
  std::getline(text, place.host, '\0');
  if (!text || place.host.empty() || place.numa_of_cpu.size() != count) {
    fail(ExitCode::internal,
         "a rank describes its place as '" + std::string(line.substr(0, 80)) +
             "' (threads cannot be planned); start the same program everywhere");
  }
  return place;
}

std::vector<std::string> Placement::hosts() const {
  std::vector<std::string> hosts;
  for (const RankPlan& plan : ranks) hosts.push_back(plan.host);
  return hosts;
}

Placement plan_job(const std::vector<std::string>& places, const std::vector<int>& nodes,
                   const PlacementRequest& request) {
  std::vector<Node> job_nodes;       // in the order of their first ranks
  std::map<int, std::size_t> found;  // by number
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto [at, fresh] = found.try_emplace(nodes[i], job_nodes.size());
    if (fresh) job_nodes.emplace_back();
    job_nodes[at->second].positions.push_back(i);
    job_nodes[at->second].places.push_back(rank_place_from(places[i]));
  }
  Placement job;
  job.ranks.resize(places.size());
  std::vector<SharedText> summaries, warnings, limits;
  for (Node& node : job_nodes) {
    Placement plan = plan_node(node.places, request, static_cast<int>(job_nodes.size()));
    for (std::size_t i = 0; i < plan.ranks.size(); ++i) {
      job.ranks[node.positions[i]] = plan.ranks[i];
    }
    node.plans = std::move(plan.ranks);
    job.crowding = std::max(job.crowding, plan.crowding);
    add(summaries, plan.lines.front(), node.name());
    for (const std::string& warning : plan.warnings) add(warnings, warning, node.name());
    for (const std::string& limit : plan.limits) add(limits, limit, node.name());
  }
  job.lines = lines(summaries);
  job.warnings = lines(warnings);
  job.limits = lines(limits);
  add_crowds(job_nodes, job);
  return job;
}

std::string range_text(const std::vector<int>& ascending) {
  std::string text;
  for (std::size_t i = 0; i < ascending.size();) {
    std::size_t last = i;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    text += (i ? "," : "") + std::to_string(ascending[i]);
    if (last > i) text += "-" + std::to_string(ascending[last]);
    i = last + 1;
  }
  return text;
}

std::vector<std::string> map_of(const Placement& job) {
  constexpr std::size_t kFew = 8;  // whose cores are worth a line each
  std::vector<std::string> map;
  for (std::span<const RankPlan> rest = job.ranks; !rest.empty();) {
    std::size_t alike = 1, ordered = 1;
    while (alike < rest.size() && place_text(rest[alike]) == place_text(rest[0])) ++alike;
    while (ordered < rest.size() && lies_behind(rest[ordered], rest[ordered - 1])) ++ordered;
    const std::span<const RankPlan> ranks = rest.first(ordered > kFew ? ordered : alike);
    const std::string who =
        ranks.size() == 1 ? fmt::format("rank {}", ranks.front().rank)
                          : fmt::format("ranks {} to {}", ranks.front().rank, ranks.back().rank);
    map.push_back(who + (ordered > kFew ? place_in_order(ranks) : place_text(ranks.front())));
    rest = rest.subspan(ranks.size());
  }
  return map;
}

}  // namespace cputrain::placement
