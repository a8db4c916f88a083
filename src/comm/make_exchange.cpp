#include "comm/make_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "comm/pages.h"
#include "core/clock.h"
#include "core/error.h"

namespace cputrain {
namespace {

using Scheme = AllreduceChoice::Scheme;

/// Picks an algorithm by the array's length.
class BySize final : public Allreduce {
 public:
  struct Part {
    SizeRange range;
    std::unique_ptr<Allreduce> allreduce;
  };
  explicit BySize(std::vector<Part> parts) : parts_(std::move(parts)) {}
  void sum(const Array& numbers) override {
    const std::size_t bytes = numbers.bytes().size();
    const auto fits = [&](const Part& p) {
      return bytes >= p.range.first && bytes <= p.range.last;
    };
    std::ranges::find_if(parts_, fits)->allreduce->sum(numbers);
  }

 private:
  std::vector<Part> parts_;
};

Channel open_channel(Communicator& communicator, const std::vector<int>& members, int group,
                     const std::vector<SizeRange>& ranges) {
  Channel channel;
  channel.peers = communicator.make_peers();
  channel.group = std::make_unique<PeerGroup>(*channel.peers, members);
  std::vector<BySize::Part> parts;
  for (const SizeRange& range : ranges) {
    auto engine = range.algorithm == "mpi" ? communicator.make_allreduce(group) : nullptr;
    parts.push_back({range, make_algorithm(range.algorithm, *channel.group, std::move(engine))});
  }
  channel.allreduce = std::make_unique<BySize>(std::move(parts));
  return channel;
}

std::unique_ptr<GradientSum> make_sum(const ExchangeParts& parts, Channel channel) {
  return make_gradient_sum(parts.compression, parts.layout, std::move(channel));
}

/// What is left of so many bytes of gradients where they are compressed.
std::size_t travelling_bytes(const ExchangeParts& parts, const OpenChannel& open,
                             std::size_t bytes) {
  const auto sum = make_sum(parts, open({{"tree"}}));
  return static_cast<std::size_t>(sum->volume({0, bytes / size_of(parts.layout.dtype)}));
}

std::size_t largest_bucket(const ExchangeParts& parts) {
  std::size_t most = 0, begin = 0;
  for (const std::size_t end : bucket_ends(parts.layout, parts.bucket_bytes)) {
    most = std::max(most, end - std::exchange(begin, end));
  }
  return most * size_of(parts.layout.dtype);
}

/// Fills in the algorithm where none was named: the best of all, at the size that will travel.
void choose_algorithm(const ExchangeParts& parts, const OpenChannel& open, int slices,
                      MadeExchange& made) {
  if (!made.choice.ranges.empty()) return;
  std::size_t bytes = parts.layout.gradient_size * size_of(parts.layout.dtype);
  if (parts.overlap != Overlap::none) bytes = largest_bucket(parts);
  bytes /= static_cast<std::size_t>(slices);
  bytes = travelling_bytes(parts, open, bytes);
  const auto times = measure_algorithms(parts.communicator, open, bytes, 3);
  const auto best = std::ranges::min_element(times, {}, &AlgorithmTime::seconds);
  made.choice.ranges = {{best->name}};
  std::string text;
  for (const AlgorithmTime& time : times) {
    text += fmt::format("{}{} {:.1f} ms", text.empty() ? "" : ", ", time.name, 1e3 * time.seconds);
  }
  made.lines.push_back(fmt::format("Allreduce of {:.1f} MB: {}; takes {}",
                                   static_cast<double>(bytes) / 1e6, text, best->name));
}

void make_replicas(const ExchangeParts& parts, MadeExchange& made) {
  const OpenChannel open = [&](const std::vector<SizeRange>& ranges) {
    return open_world(parts.communicator, ranges);
  };
  made.choice.scheme = Scheme::replicas;
  choose_algorithm(parts, open, 1, made);
  made.exchange = make_replica_exchange(parts, make_sum(parts, open(made.choice.ranges)));
}

void make_slices(const ExchangeParts& parts, MadeExchange& made) {
  const NodeMap map = read_node_map(parts.communicator);
  if (made.choice.one_node && map.nodes() > 1) {
    fail(ExitCode::usage,
         fmt::format("--allreduce shm: the ranks are on {} nodes (shared memory reaches one); use "
                     "hierarchical, or auto",
                     map.nodes()));
  }
  const OpenChannel open = [&](const std::vector<SizeRange>& ranges) {
    return open_lane(parts.communicator, map, ranges);
  };
  if (map.nodes() == 1 && made.choice.scheme == Scheme::automatic) made.choice.one_node = true;
  made.choice.scheme = Scheme::slices;
  if (map.nodes() == 1 && made.choice.ranges.empty()) made.choice.ranges = {{"tree"}};
  choose_algorithm(parts, open, map.lanes(), made);
  made.exchange = make_node_exchange(parts, map, make_sum(parts, open(made.choice.ranges)));
}

bool is_sharded(const ExchangeParts& parts) { return !sharded_parameters(parts.layout).empty(); }

void make_automatic(const ExchangeParts& parts, MadeExchange& made) {
  const bool compresses = parts.compression != Compression{};
  if (compresses && read_node_map(parts.communicator).nodes() == 1) {
    made.lines.push_back(fmt::format(
        "warning: --compress {} on one node costs more than it saves (without it the ranks would "
        "sum over shared memory and send nothing); it is meant for slow networks",
        to_text(parts.compression)));
    return make_replicas(parts, made);
  }
  try {
    make_slices(parts, made);
  } catch (const Error& error) {
    if (error.code() != ExitCode::internal || is_sharded(parts)) throw;
    made.choice = {};
    made.lines.push_back(
        fmt::format("warning: no shared memory for gradients ({}); every rank "
                    "keeps a replica of everything instead, which is slower",
                    error.what()));
    make_replicas(parts, made);
  }
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

double slowest_rank(Communicator& communicator, double seconds) {
  double most = 0;
  for (const std::string& text : communicator.gather(fmt::format("{:.9e}", seconds))) {
    most = std::max(most, std::stod(text));
  }
  return most;
}

std::vector<AlgorithmTime> measure_algorithms(Communicator& communicator, const OpenChannel& open,
                                              std::size_t bytes, int repeat) {
  const Pages memory(bytes);
  const Array numbers{memory.bytes().data(), bytes / sizeof(float), DType::f32};
  std::vector<AlgorithmTime> times;
  for (const std::string& name : allreduce_algorithms()) {
    const Channel channel = open({{name}});
    std::vector<double> seconds;
    for (int i = 0; i <= repeat; ++i) {  // the first warms up
      communicator.barrier();
      const Stopwatch watch;
      channel.allreduce->sum(numbers);
      const double slowest = slowest_rank(communicator, watch.seconds());
      if (i > 0) seconds.push_back(slowest);
    }
    std::ranges::sort(seconds);
    times.push_back({name, seconds[seconds.size() / 2]});
  }
  return times;
}

MadeExchange make_exchange(const ExchangeParts& parts, const AllreduceChoice& choice) {
  assert(!is_sharded(parts) || choice.scheme == Scheme::automatic ||
         choice.scheme == Scheme::slices);
  MadeExchange made;
  made.choice = choice;
  check_compression(parts.compression, choice);
  if (parts.lanes > 0) {
    made.exchange = make_ordered_exchange(parts, read_node_map(parts.communicator));
    return made;
  }
  switch (choice.scheme) {
    case Scheme::automatic:
      make_automatic(parts, made);
      break;
    case Scheme::replicas:
      make_replicas(parts, made);
      break;
    case Scheme::slices:
      make_slices(parts, made);
      break;
    case Scheme::server:
      made.exchange = make_server_exchange(parts);
      break;
  }
  return made;
}

}  // namespace cputrain
