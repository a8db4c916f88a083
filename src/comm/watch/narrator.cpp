#include "comm/watch/narrator.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "system/lost_time.h"

namespace cputrain::watch {
namespace {

std::string place_text(const comm::Place& place) {
  const std::string phase(comm::name_of(place.phase));
  return place.step == 0 ? phase : fmt::format("{} of step {}", phase, place.step);
}

/// "2, 5-7"
std::string list_of(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < ranks.size();) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    const std::string first = std::to_string(ranks[begin]), last = std::to_string(ranks[end - 1]);
    parts.push_back(end - begin == 1   ? first
                    : end - begin == 2 ? first + ", " + last
                                       : first + "-" + last);
    begin = end;
  }
  return join(parts, ", ");
}

/// Ranks that one host has, the hosts in the order of their first ranks.
std::vector<std::pair<std::string, std::vector<int>>> by_host(const Team& team,
                                                              const std::vector<int>& ranks) {
  std::vector<std::pair<std::string, std::vector<int>>> hosts;
  for (const int rank : ranks) {
    const std::string& host = team.hosts[static_cast<std::size_t>(rank)];
    auto found = std::ranges::find(hosts, host, [](const auto& entry) { return entry.first; });
    if (found == hosts.end()) found = hosts.insert(found, {host, {}});
    found->second.push_back(rank);
  }
  return hosts;
}

std::vector<std::string> hosts_of(const Team& team, std::vector<int> ranks) {
  if (ranks.empty()) {
    for (int rank = 0; rank < team.size(); ++rank) ranks.push_back(rank);
  }
  std::vector<std::string> names;
  for (const auto& [host, those] : by_host(team, ranks)) names.push_back(host);
  return names;
}

}  // namespace

Narrator::Narrator(const Team& team, const Limits& limits) : team_(team), limits_(limits) {}

/// "rank 3 on b", "Missing ranks: 2, 3 on b; 5 on c"; a rank that goes on is not missing.
std::string Narrator::who(const Finding& finding) const {
  std::vector<std::string> parts;
  for (const auto& [host, those] : by_host(team_, finding.ranks)) {
    parts.push_back(fmt::format("{} on {}", list_of(those), host));
  }
  const char* const many = goes_on(finding.cause) ? "ranks " : "Missing ranks: ";
  return (finding.ranks.size() == 1 ? "rank " : many) + join(parts, "; ");
}

std::string Narrator::why(const Finding& finding) const {
  const std::string place = place_text(finding.place);
  const bool one = finding.ranks.size() == 1;
  switch (finding.cause) {
    case Cause::none:
      break;
    case Cause::silent:
      return fmt::format("{} {} not answer (in {})", who(finding), one ? "does" : "do", place);
    case Cause::hung:
      return fmt::format("{} {} and {} nothing (in {}; storage, a lock, or a device?)",
                         who(finding), one ? "answers" : "answer", one ? "does" : "do", place);
    case Cause::cpu:
      return fmt::format("{} {} for a CPU (in {}): {}", who(finding), one ? "waits" : "wait", place,
                         system::cpu_wait_reason(false));
    case Cause::memory:
      return fmt::format("{} {} for memory that is read back from a disk (in {}): too little of it",
                         who(finding), one ? "waits" : "wait", place);
    case Cause::reader:
      return fmt::format("{} {} until somebody reads what {} (in {}; a paused terminal or pager?)",
                         who(finding), one ? "waits" : "wait", one ? "it prints" : "they print",
                         place);
    case Cause::launcher:
      return fmt::format("{} {} for the launcher, which is stopped (in {})", who(finding),
                         one ? "waits" : "wait", place);
    case Cause::slow:
      return fmt::format("{} still {} (in {}), so it is slow and no stall", who(finding),
                         one ? "computes" : "compute", place);
    case Cause::deaf:
      return fmt::format("{} {} no other rank (all wait, in {}): the network lets nothing in",
                         who(finding), one ? "hears" : "hear", place);
    case Cause::hidden:
      return fmt::format(
          "all others wait (in {}) for {}, of which nothing is known (is UDP blocked "
          "between hosts?)",
          place, who(finding));
    case Cause::network:
      return fmt::format(
          "all ranks wait in {} and all answer: what they sent each other was lost "
          "(hosts {})",
          place, join(hosts_of(team_, {}), ", "));
  }
  return "";
}

nlohmann::ordered_json Narrator::entry_of(const char* event, const Finding& finding) const {
  return {{"event", event},
          {"cause", cputrain::word_of(finding.cause)},
          {"seconds", finding.seconds},
          {"ranks", finding.ranks},
          {"hosts", hosts_of(team_, finding.ranks)},
          {"step", finding.place.step},
          {"phase", comm::name_of(finding.place.phase)},
          {"by", team_.rank}};
}

Word Narrator::word_of(const Finding& finding) const {
  if (finding.ends) {
    return {fmt::format("cputrain: no rank got further for {:.0f} s (--stall end), so the job "
                        "ends: {}",
                        finding.seconds, why(finding)),
            entry_of("end", finding)};
  }
  return {fmt::format(
              "warning: no rank has got further for {:.0f} s: {}{}", finding.seconds, why(finding),
              finding.may_end
                  ? fmt::format("; the job ends after {:g} s (--stall end)", limits_.timeout)
                  : ""),
          entry_of("stall", finding)};
}

Word Narrator::end_of(Finding finding, double now) const {
  finding.seconds = now - began_;
  const std::string who_came =
      finding.ranks.empty()
          ? "the ranks go on"
          : fmt::format("{} {} on again", who(finding), finding.ranks.size() == 1 ? "goes" : "go");
  return {fmt::format("{} after {:.1f} s, and so does the job", who_came, finding.seconds),
          entry_of("goes_on", finding)};
}

std::optional<Word> Narrator::hear(const Finding& finding, double now) {
  constexpr double kLeast = 5;  // between two words about others at fault, or of another cause
  if (finding.cause == Cause::none) {
    const auto told = std::exchange(told_, std::nullopt);
    return told ? std::optional(end_of(*told, now)) : std::nullopt;
  }
  if (told_ && !finding.ends) {
    const bool changed = told_->ranks != finding.ranks || told_->cause != finding.cause;
    if (now - last_ < (changed ? kLeast : kSayAgain)) return std::nullopt;
  }
  if (!told_) began_ = now - finding.seconds;
  told_ = finding;
  last_ = now;
  return word_of(finding);
}

std::optional<Word> Narrator::hear_hidden(const std::vector<RankView>& views) {
  if (std::exchange(told_hidden_, true)) return std::nullopt;
  Finding finding{.cause = Cause::hidden};
  for (const RankView& view : views) {
    if (view.hidden && !view.finished) finding.ranks.push_back(view.rank);
  }
  if (finding.ranks.empty()) return std::nullopt;
  const auto hosts = hosts_of(team_, finding.ranks);
  return Word{
      fmt::format("warning: no word by UDP comes from {} (a firewall?); where the job waits "
                  "for ranks there, that is said, but it does not end",
                  join(hosts, ", ")),
      entry_of("hidden", finding)};
}

}  // namespace cputrain::watch
