#include <map>
#include <sstream>
#include <utility>

#include "core/error.h"
#include "core/placement.h"

namespace cputrain {

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

RankPlace place_of(int rank, const Machine& machine) {
  return {rank,
          machine.host,
          machine.cores,
          machine.cpu_quota,
          machine.allowed_cpus,
          machine.core_of_cpu};
}

std::string to_text(const RankPlace& place) {
  std::ostringstream text;
  text.precision(17);
  text << place.rank << ' ' << place.host << ' ' << place.machine_cores << ' ' << place.cpu_quota
       << ' ' << place.cpus.size();
  for (int cpu : place.cpus) text << ' ' << cpu;
  for (int core : place.core_of_cpu) text << ' ' << core;
  return text.str();
}

RankPlace rank_place_from(std::string_view line) {
  std::istringstream text{std::string(line)};
  RankPlace place;
  std::size_t count = 0;
  text >> place.rank >> place.host >> place.machine_cores >> place.cpu_quota >> count;
  const auto read = [&](std::vector<int>& numbers) {
    for (int number = 0; text && numbers.size() < count && text >> number;) {
      numbers.push_back(number);
    }
  };
  read(place.cpus);
  read(place.core_of_cpu);
  if (!text || place.core_of_cpu.size() != count) {
    fail(ExitCode::internal,
         "a rank describes its place as '" + std::string(line.substr(0, 80)) +
             "' (threads cannot be planned); start the same program everywhere");
  }
  return place;
}

JobPlacement plan_job(const std::vector<std::string>& places, std::optional<int> asked_threads) {
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
  job.threads.resize(places.size());
  std::vector<SharedText> summaries, warnings;
  for (const std::string& host : hosts) {
    const Placement plan = plan_threads(ranks_of[host], asked_threads);
    for (std::size_t i = 0; i < plan.threads.size(); ++i) {
      job.threads[positions_of[host][i]] = plan.threads[i];
    }
    add(summaries, plan.summary, host);
    for (const std::string& warning : plan.warnings) add(warnings, warning, host);
  }
  job.lines = lines(summaries);
  job.warnings = lines(warnings);
  return job;
}

}  // namespace cputrain
