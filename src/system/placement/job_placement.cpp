#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "core/error.h"
#include "system/placement/placement.h"

namespace cputrain::placement {

namespace {

/// The threads of a machine and their ranks are what one line is about: machines whose text is the
/// same share it.
struct SharedText {
  std::string text;
  std::vector<std::string> hosts;
};

void add(std::vector<SharedText>& texts, const std::string& text, const std::string& host) {
  for (SharedText& shared : texts) {
    if (shared.text == text) {
      shared.hosts.push_back(host);
      return;
    }
  }
  texts.push_back({text, {host}});
}

/// "host a", "5 hosts (a, b, c, ...), each".
std::string hosts_text(const std::vector<std::string>& hosts) {
  if (hosts.size() == 1) return "host " + hosts[0];
  std::string text = std::to_string(hosts.size()) + " hosts (" + hosts[0];
  for (std::size_t i = 1; i < hosts.size() && i < 3; ++i) text += ", " + hosts[i];
  return text + (hosts.size() > 3 ? ", ...), each" : "), each");
}

std::vector<std::string> lines(const std::vector<SharedText>& texts) {
  std::vector<std::string> result;
  for (const SharedText& shared : texts) {
    result.push_back(hosts_text(shared.hosts) + ": " + shared.text);
  }
  return result;
}

}  // namespace

RankPlace place_of(int rank, const Machine& machine, bool user_binds, const Binder& binder) {
  return {rank,
          machine.host,
          machine.cores,
          machine.hardware_threads,
          machine.numa_nodes,
          machine.cpu_quota,
          machine.team_limit,
          machine.team_limited_by.empty() ? "-" : machine.team_limited_by,
          user_binds,
          binder,
          machine.allowed_cpus,
          machine.core_of_cpu,
          machine.numa_of_cpu};
}

std::string to_text(const RankPlace& place) {
  std::ostringstream text;
  text.precision(17);
  text << place.rank << ' ' << place.host << ' ' << place.machine_cores << ' ' << place.machine_cpus
       << ' ' << place.numa_nodes << ' ' << place.cpu_quota << ' ' << place.team_limit << ' '
       << place.team_limited_by << ' ' << place.user_binds << ' '
       << static_cast<int>(place.binder.kind) << ' ' << place.binder.variables << ' '
       << place.binder.openmp << ' ' << place.cpus.size();
  for (const auto* numbers : {&place.cpus, &place.core_of_cpu, &place.numa_of_cpu}) {
    for (const int number : *numbers) text << ' ' << number;
  }
  return text.str();
}

RankPlace rank_place_from(std::string_view line) {
  std::istringstream text{std::string(line)};
  RankPlace place;
  std::size_t count = 0;
  int binder = 0;
  text >> place.rank >> place.host >> place.machine_cores >> place.machine_cpus >>
      place.numa_nodes >> place.cpu_quota >> place.team_limit >> place.team_limited_by >>
      place.user_binds >> binder >> place.binder.variables >> place.binder.openmp >> count;
  place.binder.kind = static_cast<Binder::Kind>(binder);
  const auto read = [&](std::vector<int>& numbers) {
    for (int number = 0; text && numbers.size() < count && text >> number;) {
      numbers.push_back(number);
    }
  };
  read(place.cpus);
  read(place.core_of_cpu);
  read(place.numa_of_cpu);
  if (!text || place.numa_of_cpu.size() != count) {
    fail(ExitCode::internal,
         "a rank describes its place as '" + std::string(line.substr(0, 80)) +
             "' (threads cannot be planned); start the same program everywhere");
  }
  return place;
}

std::vector<std::string> JobPlacement::hosts() const {
  std::vector<std::string> hosts;
  for (const RankPlan& plan : ranks) hosts.push_back(plan.host);
  return hosts;
}

JobPlacement plan_job(const std::vector<std::string>& places, const PlacementRequest& request) {
  std::vector<std::string> hosts;  // in the order of their first ranks
  std::map<std::string, std::vector<RankPlace>> ranks_of;
  std::map<std::string, std::vector<std::size_t>> positions_of;
  for (std::size_t i = 0; i < places.size(); ++i) {
    RankPlace place = rank_place_from(places[i]);
    if (!ranks_of.contains(place.host)) hosts.push_back(place.host);
    positions_of[place.host].push_back(i);
    ranks_of[place.host].push_back(std::move(place));
  }
  JobPlacement job;
  job.ranks.resize(places.size());
  std::vector<SharedText> summaries, warnings, limits;
  for (const std::string& host : hosts) {
    Placement plan = plan_node(ranks_of[host], request, static_cast<int>(hosts.size()));
    for (std::size_t i = 0; i < plan.ranks.size(); ++i) {
      job.ranks[positions_of[host][i]] = std::move(plan.ranks[i]);
    }
    job.crowding = std::max(job.crowding, plan.crowding);
    add(summaries, plan.summary, host);
    for (const std::string& warning : plan.warnings) add(warnings, warning, host);
    for (const std::string& limit : plan.limits) add(limits, limit, host);
  }
  job.lines = lines(summaries);
  job.warnings = lines(warnings);
  job.limits = lines(limits);
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

std::vector<std::string> map_of(const JobPlacement& job) {
  std::vector<std::string> map;
  for (const RankPlan& plan : job.ranks) {
    std::string line = "rank " + std::to_string(plan.rank) + " on " + plan.host + ": core" +
                       (plan.cores.size() == 1 ? " " : "s ") + range_text(plan.cores) +
                       " (NUMA node" + (plan.numa.size() == 1 ? " " : "s ") +
                       range_text(plan.numa) + ", hardware thread" +
                       (plan.cpus.size() == 1 ? " " : "s ") + range_text(plan.cpus) + "), " +
                       std::to_string(plan.threads) + (plan.threads == 1 ? " thread" : " threads") +
                       ", " + std::to_string(plan.input_threads) + " for input";
    if (plan.communication_cpu) {
      line += ", communication on hardware thread " + std::to_string(*plan.communication_cpu);
    } else if (plan.communication_core) {
      line += ", a core kept for communication";
    }
    map.push_back(line + (plan.bind ? ", bound" : ""));
  }
  return map;
}

}  // namespace cputrain::placement
