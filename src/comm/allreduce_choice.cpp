#include "comm/allreduce_choice.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::comm {
namespace {

/// An array of n bytes over P ranks.
struct Sum {
  Line message;  ///< seconds by bytes
  double ranks, bytes;

  double rounds() const { return std::floor(std::log2(ranks)); }
  double whole() const { return message.fixed + bytes * message.each; }
  double halves() const { return 2 * bytes * message.each * (ranks - 1) / ranks; }
  /// Those beyond a power of two hand their arrays to others, and get the sums back.
  double folding() const { return std::exp2(rounds()) == ranks ? 0 : 2 * whole(); }
};

double ring_seconds(const Sum& s) { return 2 * (s.ranks - 1) * s.message.fixed + s.halves(); }
double doubling_seconds(const Sum& s) { return s.rounds() * s.whole() + s.folding(); }
double rabenseifner_seconds(const Sum& s) {
  return 2 * s.rounds() * s.message.fixed + s.halves() + s.folding();
}
double tree_seconds(const Sum& s) { return 2 * std::ceil(std::log2(s.ranks)) * s.whole(); }

struct Algorithm {
  std::string_view name;
  std::unique_ptr<Allreduce> (*make)(PointToPoint&);
  double (*seconds)(const Sum&);
};

constexpr Algorithm kAlgorithms[] = {
    {"mpi", nullptr, nullptr},  // the engine's own, of which nothing is known
    {"ring", make_ring, ring_seconds},
    {"recursive-doubling", make_recursive_doubling, doubling_seconds},
    {"rabenseifner", make_rabenseifner, rabenseifner_seconds},
    {"tree", make_tree, tree_seconds}};

constexpr const char *kAuto = "auto", *kOneNode = "shm", *kSlices = "hierarchical", *kServer = "ps",
                     *kNccl = "nccl", *kStaged = "staged";

[[noreturn]] void wrong(const std::string& text, const std::string& why) {
  fail(ExitCode::usage,
       "--allreduce {}: {}; write {}, {}, {}, {}+ALGORITHM, {}, ALGORITHM, or by size "
       "ALGORITHM:FIRST-LAST;ALGORITHM:FIRST-max with ALGORITHM one of {}; between GPUs {} or {}",
       text, why, kAuto, kOneNode, kSlices, kSlices, kServer, join(allreduce_algorithms(), ", "),
       kNccl, kStaged);
}

std::size_t number(const std::string& text, const std::string& word) {
  const auto value = number_in<std::size_t>(word);
  if (!value) wrong(text, "'" + word + "' is no number of bytes");
  return *value;
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
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const Algorithm& one : kAlgorithms) names.emplace_back(one.name);
    return names;
  }();
  return all;
}

std::vector<std::string> allreduce_words() {
  std::vector<std::string> words{kAuto, kOneNode, kSlices, kServer, kNccl, kStaged};
  words.insert(words.end(), allreduce_algorithms().begin(), allreduce_algorithms().end());
  return words;
}

std::string quickest_algorithm(const Line& message, int ranks, double bytes) {
  const Sum sum{message, static_cast<double>(ranks), bytes};
  const auto seconds = [&](const Algorithm& one) {
    return one.seconds ? one.seconds(sum) : std::numeric_limits<double>::infinity();
  };
  return std::string(std::ranges::min_element(kAlgorithms, {}, seconds)->name);
}

AllreduceChoice parse_allreduce(const std::string& text) {
  using Scheme = AllreduceChoice::Scheme;
  if (text == kAuto) return {};
  if (text == kServer) return {Scheme::server, {{"tree"}}, false};
  if (text == kOneNode) return {Scheme::slices, {{"tree"}}, true};
  if (text == kSlices) return {Scheme::slices, {}, false};
  if (text == kNccl) return {Scheme::replicas, {}, false, DevicePath::nccl};
  if (text == kStaged) return {Scheme::replicas, {}, false, DevicePath::staged};
  const std::string within = std::string(kSlices) + "+";
  if (text.starts_with(within)) {
    return {Scheme::slices, parse_ranges(text, text.substr(within.size())), false};
  }
  return {Scheme::replicas, parse_ranges(text, text), false};
}

std::string to_text(const AllreduceChoice& choice) {
  using Scheme = AllreduceChoice::Scheme;
  if (choice.scheme == Scheme::automatic) return kAuto;
  if (choice.scheme == Scheme::server) return kServer;
  if (choice.one_node) return kOneNode;
  if (choice.devices == DevicePath::nccl) return kNccl;
  if (choice.devices == DevicePath::staged && choice.ranges.empty()) return kStaged;
  std::string text = choice.scheme == Scheme::slices ? kSlices : "";
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
  const auto found = std::ranges::find(kAlgorithms, name, &Algorithm::name);
  return found->make ? found->make(peers) : std::move(engine);
}

namespace {

/// Picks an algorithm by the array's length.
class BySize final : public Allreduce {
 public:
  /// By the last byte of each range. Ranges hold every length once.
  using ByLast = std::map<std::size_t, std::unique_ptr<Allreduce>>;
  explicit BySize(ByLast parts) : parts_(std::move(parts)) {}
  void sum(const Array& numbers) override {
    parts_.lower_bound(numbers.bytes().size())->second->sum(numbers);
  }

 private:
  ByLast parts_;
};

Channel open_channel(Communicator& communicator, const std::vector<int>& members, int group,
                     const std::vector<SizeRange>& ranges) {
  Channel channel;
  channel.peers = communicator.make_point_to_point();
  channel.group = std::make_unique<PointToPointGroup>(*channel.peers, members);
  BySize::ByLast parts;
  for (const SizeRange& range : ranges) {
    auto engine = range.algorithm == "mpi" ? communicator.make_allreduce(group) : nullptr;
    parts[range.last] = make_algorithm(range.algorithm, *channel.group, std::move(engine));
  }
  channel.allreduce = std::make_unique<BySize>(std::move(parts));
  return channel;
}

}  // namespace

Channel open_world(Communicator& communicator, const std::vector<SizeRange>& ranges) {
  std::vector<int> all(static_cast<std::size_t>(communicator.size()));
  std::iota(all.begin(), all.end(), 0);
  return open_channel(communicator, all, 0, ranges);
}

Channel open_lane(Communicator& communicator, const NodeMap& map,
                  const std::vector<SizeRange>& ranges) {
  const int rank = communicator.rank();
  if (map.local < map.lanes()) {
    return open_channel(communicator, map.lane(map.local), map.local, ranges);
  }
  return open_channel(communicator, {rank}, map.lanes() + rank, ranges);
}

}  // namespace cputrain::comm
