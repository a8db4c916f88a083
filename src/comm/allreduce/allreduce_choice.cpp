#include "comm/allreduce/allreduce_choice.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "core/error.h"

namespace cputrain::comm {
namespace {

constexpr const char* kGrammar =
    "write auto, shm, hierarchical, hierarchical+ALGORITHM, ps, ALGORITHM, or by size "
    "ALGORITHM:FIRST-LAST;ALGORITHM:FIRST-max with ALGORITHM one of mpi, ring, "
    "recursive-doubling, rabenseifner, tree; between GPUs nccl or staged";

[[noreturn]] void wrong(const std::string& text, const std::string& why) {
  fail(ExitCode::usage, "--allreduce " + text + ": " + why + "; " + kGrammar);
}

std::size_t number(const std::string& text, const std::string& word) {
  std::size_t value = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end) wrong(text, "'" + word + "' is no number of bytes");
  return value;
}

std::string algorithm(const std::string& text, std::string word) {
  std::ranges::replace(word, '_', '-');
  if (std::ranges::count(allreduce_algorithms(), word)) return word;
  wrong(text, "'" + word + "' is no algorithm");
}

SizeRange parse_range(const std::string& text, const std::string& part) {
  const std::size_t colon = part.find(':');
  if (colon == std::string::npos) return {algorithm(text, part)};
  const std::size_t dash = part.find('-', colon);
  if (dash == std::string::npos) wrong(text, "'" + part + "' names no range of sizes");
  const std::string last = part.substr(dash + 1);
  return {algorithm(text, part.substr(0, colon)),
          number(text, part.substr(colon + 1, dash - colon - 1)),
          last == "max" ? SizeRange{}.last : number(text, last)};
}

std::vector<SizeRange> parse_ranges(const std::string& text, const std::string& list) {
  std::vector<SizeRange> ranges;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ';');) {
    ranges.push_back(parse_range(text, part));
  }
  std::ranges::sort(ranges, {}, &SizeRange::first);
  std::size_t next = 0;
  for (const SizeRange& range : ranges) {
    const bool behind_max = next == 0 && &range != &ranges.front();
    if (range.first != next || range.last < range.first || behind_max) {
      wrong(text,
            "the ranges leave out or double the sizes from " + std::to_string(next) + " bytes");
    }
    next = range.last + 1;  // 0 behind the last
  }
  if (ranges.empty() || next != 0) wrong(text, "the ranges do not reach max");
  return ranges;
}

}  // namespace

const std::vector<std::string>& allreduce_algorithms() {
  static const std::vector<std::string> names{"mpi", "ring", "recursive-doubling", "rabenseifner",
                                              "tree"};
  return names;
}

AllreduceChoice parse_allreduce(const std::string& text) {
  using Scheme = AllreduceChoice::Scheme;
  if (text == "auto") return {};
  if (text == "ps") return {Scheme::server, {{"tree"}}, false};
  if (text == "shm") return {Scheme::slices, {{"tree"}}, true};
  if (text == "hierarchical") return {Scheme::slices, {}, false};
  if (text == "nccl") return {Scheme::replicas, {}, false, AllreduceChoice::Devices::nccl};
  if (text == "staged") return {Scheme::replicas, {}, false, AllreduceChoice::Devices::staged};
  const std::string within = "hierarchical+";
  if (text.starts_with(within)) {
    return {Scheme::slices, parse_ranges(text, text.substr(within.size())), false};
  }
  return {Scheme::replicas, parse_ranges(text, text), false};
}

std::string to_text(const AllreduceChoice& choice) {
  using Scheme = AllreduceChoice::Scheme;
  if (choice.scheme == Scheme::automatic) return "auto";
  if (choice.scheme == Scheme::server) return "ps";
  if (choice.one_node) return "shm";
  if (choice.devices == AllreduceChoice::Devices::nccl) return "nccl";
  if (choice.devices == AllreduceChoice::Devices::staged && choice.ranges.empty()) return "staged";
  std::string text = choice.scheme == Scheme::slices ? "hierarchical" : "";
  const char* separator = choice.scheme == Scheme::slices ? "+" : "";
  for (const SizeRange& range : choice.ranges) {
    text += std::exchange(separator, ";") + range.algorithm;
    if (range.first == 0 && range.last == SizeRange{}.last) continue;
    text += ":" + std::to_string(range.first) + "-" +
            (range.last == SizeRange{}.last ? "max" : std::to_string(range.last));
  }
  return text;
}

std::unique_ptr<Allreduce> make_algorithm(const std::string& name, PointToPoint& peers,
                                          std::unique_ptr<Allreduce> engine) {
  if (name == "ring") return make_ring(peers);
  if (name == "recursive-doubling") return make_recursive_doubling(peers);
  if (name == "rabenseifner") return make_rabenseifner(peers);
  if (name == "tree") return make_tree(peers);
  return engine;
}

}  // namespace cputrain::comm
