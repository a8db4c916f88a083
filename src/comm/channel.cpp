#include "comm/channel.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace cputrain::comm {
namespace {

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
  channel.peers = communicator.make_point_to_point();
  channel.group = std::make_unique<PointToPointGroup>(*channel.peers, members);
  std::vector<BySize::Part> parts;
  for (const SizeRange& range : ranges) {
    auto engine = range.algorithm == "mpi" ? communicator.make_allreduce(group) : nullptr;
    parts.push_back({range, make_algorithm(range.algorithm, *channel.group, std::move(engine))});
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
