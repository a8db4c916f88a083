#include "cells/lost_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "cells/explanation.h"
#include "cells/run_figures.h"
#include "core/json_fields.h"
#include "core/strict_json.h"
#include "core/text.h"
#include "system/bounded_file.h"
#include "system/lost_time/cpu_wait.h"
#include "system/lost_time/stolen_time.h"

namespace cputrain::cells {
namespace {

/// A way to lose time; `sentence` has a place for the percentage.
struct Way {
  const char* what;
  double least;  ///< share from which on it matters
  const char* sentence;
};

constexpr Way kImages{"images", kWaitLimits,
                      "Starved of images: {:.0f} % of the time was waiting for input; try a packed "
                      "file (data pack), more --io-threads, or fewer changes by --augment."};
constexpr Way kCommunication{
    "communication", kWaitLimits,
    "Starved by communication: {:.0f} % of the time was sums of gradients that backward did not "
    "hide; try a larger --batch, fewer ranks with more --threads each, or --compress bf16."};
constexpr Way kBalance{
    "balance", kWaitLimits,
    "Starved by the slowest rank: {:.0f} % of the time ranks waited for the last of them; try "
    "cores of one kind with nothing else on them, or fewer ranks with more --threads each."};
constexpr Way kHost{
    "host", system::kStolenWorthSaying,
    "Starved of CPU time by the host: {:.0f} % of a rank's CPU time went to other guests of this "
    "virtual machine's host; try again later, or a machine whose CPUs are not shared."};
constexpr Way kCpus{
    "CPUs", system::kWaitWorthSaying,
    "Starved of CPUs: threads of a rank waited {:.0f} % of their time for one; end other work on "
    "the machine, or try fewer ranks or --threads."};

}  // namespace

std::vector<LostTime> lost_time(const Budget& budget, double seconds, std::optional<double> stolen,
                                std::optional<double> cpu_wait) {
  std::vector<LostTime> lost;
  const auto look = [&](const Way& way, double share) {
    if (share < way.least) return;
    lost.push_back({way.what, share, fmt::format(fmt::runtime(way.sentence), 100 * share)});
  };
  if (seconds > 0) {
    look(kImages, budget.input_wait / seconds);
    look(kCommunication, budget.allreduce_exposed / seconds);
    look(kBalance, budget.straggler_wait / seconds);
  }
  look(kHost, stolen.value_or(0));
  look(kCpus, cpu_wait.value_or(0));
  std::ranges::stable_sort(lost, std::greater(), &LostTime::share);
  return lost;
}

std::vector<LostTime> lost_time_of(const Cell& cell) {
  if (!cell.budget || !cell.seconds_per_epoch) return {};
  return lost_time(*cell.budget, *cell.seconds_per_epoch, cell.stolen, cell.cpu_wait);
}

namespace {

using nlohmann::json;

/// 0 where it is no time.
double seconds_in(const json& object, const char* key) {
  return number_in(object, key, 0, 1e10).value_or(0);
}

/// "rank 2 on vm", "ranks of vm, vm-1"
std::string who(const json& rank, const json& hosts) {
  std::vector<std::string> names;
  for (const json& host : hosts) {
    if (host.is_string()) names.push_back(printable(host.get<std::string>()));
  }
  return rank.is_number_unsigned()
             ? fmt::format("rank {} on {}", rank.get<std::uint64_t>(), join(names, ", "))
             : "ranks of " + join(names, ", ");
}

void add(LostSeconds::Loss& loss, double seconds, const std::string& whose = "") {
  if (seconds == 0) return;
  ++loss.times;
  loss.seconds += seconds;
  if (!whose.empty()) loss.whose[whose] += seconds;
}

/// Calls `take` with each object. Lines of steps say nothing of losses, and are most of them.
template <class Take>
void for_objects(const std::filesystem::path& path, Take take) {
  try {
    system::BoundedLines lines(path, kMetricsLimits);
    while (const auto line = lines.next()) {
      if (line->starts_with("{\"type\":\"step\"")) continue;
      try {
        const json object = parse_strict_json(*line);
        if (object.is_object()) take(object);
      } catch (const std::exception&) {  // a line that was cut off, or is none of ours
      }
    }
  } catch (const std::runtime_error&) {  // no such file, or too large a one
  }
}

std::string most_text(const LostSeconds::Loss& loss) {
  const auto most =
      std::ranges::max_element(loss.whose, {}, &std::map<std::string, double>::value_type::second);
  return most == loss.whose.end() ? "" : fmt::format(" (most: {})", most->first);
}

}  // namespace

bool LostSeconds::any() const {
  return restarts.times + checkpoints.times + stragglers.times + stalls.times > 0;
}

LostSeconds lost_seconds(const std::filesystem::path& run) {
  LostSeconds lost;
  for_objects(run / "metrics.jsonl", [&](const json& line) {
    const json type = line.value("type", json());
    if (type == "resume") add(lost.restarts, seconds_in(line, "lost_seconds"));
    if (type == "summary") {
      lost.checkpoints = {};
      add(lost.checkpoints, seconds_in(line, "checkpoint_seconds"));
    }
    if (type != "epoch" || !line.contains("straggler")) return;
    const json& last = line.at("straggler");
    add(lost.stragglers, seconds_in(last, "seconds"),
        who(last.at("rank"), json::array({last.at("host")})));
  });
  double until = 0;  // both sides of a cut link tell of one stall
  for_objects(run / "stalls.jsonl", [&](const json& line) {
    if (line.value("event", json()) != "goes_on") return;
    const json& ranks = line.at("ranks");
    const double seconds = seconds_in(line, "seconds"), end = seconds_in(line, "time");
    const double before = std::exchange(until, std::max(until, end));
    if (end > 0 && end - seconds < before) return;
    add(lost.stalls, seconds, who(ranks.size() == 1 ? ranks.at(0) : json(), line.at("hosts")));
  });
  return lost;
}

std::string text_of(const LostSeconds& lost) {
  constexpr double kLeast = 1;
  std::vector<std::string> parts;
  const auto say = [&](const LostSeconds::Loss& loss, const std::string& what) {
    if (loss.seconds < kLeast) return;
    parts.push_back(fmt::format("{} {:.1f} s{}", what, loss.seconds, most_text(loss)));
  };
  say(lost.restarts, counted(lost.restarts.times, "restart"));
  say(lost.checkpoints, "checkpoints");
  say(lost.stragglers, "stragglers");
  say(lost.stalls, counted(lost.stalls.times, "stall"));
  return join(parts, ", ");
}

}  // namespace cputrain::cells
