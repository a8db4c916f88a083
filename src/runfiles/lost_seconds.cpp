#include "runfiles/lost_seconds.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/json_fields.h"
#include "core/json_text.h"
#include "core/text.h"
#include "system/bounded_file.h"

namespace cputrain::runfiles {
namespace {

using nlohmann::json;

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
  if (!(seconds > 0)) return;
  ++loss.times;
  loss.seconds += seconds;
  if (!whose.empty()) loss.whose[whose] += seconds;
}

/// Stalls of which the job went on; both sides of a cut link tell of one.
void add_stalls(LostSeconds::Loss& stalls, const std::filesystem::path& file) {
  constexpr std::uintmax_t kMost = 256 << 20, kMostOfLine = 1 << 16;  // bytes
  constexpr double kMostSeconds = 1e10;
  double until = 0;
  try {
    system::BoundedLines lines(file, kMost, kMostOfLine);
    while (const auto text = lines.next()) {
      try {
        const json line = parse_strict_json(*text);
        if (line.value("event", json()) != "goes_on") continue;
        const json& ranks = line.at("ranks");
        const double seconds = number_in(line, "seconds", 0, kMostSeconds).value_or(0),
                     end = number_in(line, "time", 0, kMostSeconds).value_or(0);
        const double before = std::exchange(until, std::max(until, end));
        if (end > 0 && end - seconds < before) continue;
        add(stalls, seconds, who(ranks.size() == 1 ? ranks.at(0) : json(), line.at("hosts")));
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

LostSeconds lost_seconds(const std::filesystem::path& run, const Metrics& metrics) {
  LostSeconds lost;
  for (const ResumeLine& line : metrics.resumes) {
    add(lost.restarts, line.lost_seconds.value_or(0));
  }
  for (const EpochLine& line : metrics.epochs) {
    if (!line.straggler) continue;
    const auto& [rank, host, seconds] = *line.straggler;
    add(lost.stragglers, seconds, fmt::format("rank {} on {}", rank, printable(host)));
  }
  if (metrics.summary) add(lost.checkpoints, metrics.summary->checkpoint_seconds);
  add_stalls(lost.stalls, run / "stalls.jsonl");
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

}  // namespace cputrain::runfiles
