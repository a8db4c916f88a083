#include "training/run/lost_seconds.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "core/json_text.h"
#include "core/text.h"

namespace cputrain::training {
namespace {

using nlohmann::json;

/// 0 where it is no time.
double seconds_in(const json& object, const char* key) {
  constexpr double kMost = 1e10;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return 0;
  const double seconds = *found;
  return seconds > 0 && seconds < kMost ? seconds : 0;
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

}  // namespace cputrain::training
