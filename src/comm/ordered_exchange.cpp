#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "comm/exchanges.h"
#include "comm/node_arrays.h"
#include "comm/node_blocks.h"
#include "comm/pages.h"
#include "core/clock.h"

namespace cputrain {
namespace {

class OrderedExchange final : public GradientExchange {
 public:
  OrderedExchange(const ExchangeParts& parts, const NodeMap& map,
                  std::unique_ptr<NodeBlocks> blocks)
      : communicator_(parts.communicator),
        map_(map),
        lanes_(parts.lanes),
        sum_arrays_(parts.sum),
        blocks_(std::move(blocks)),
        sum_memory_(parts.layout.gradient_size * size_of(parts.layout.dtype)),
        sum_{sum_memory_.bytes().data(), parts.layout.gradient_size, parts.layout.dtype},
        peers_(parts.communicator.make_peers()),
        node_(*peers_, map.own()),
        sum_measures_(make_tree(node_)) {
    if (map.local < map.lanes()) owned_.push_back(slice_of({0, sum_.size}, map.local, map.lanes()));
    if (!owned_.empty() && owned_[0].size() == 0) owned_.clear();
    const std::size_t slice = owned_.empty() ? 0 : owned_[0].size() * size_of(sum_.dtype);
    for (const auto& ranks : map.ranks) {
      received_.emplace_back(ranks == map.own() ? 0 : slice * leaves_of(ranks));
    }
  }

  Arenas arenas() const override { return {blocks_->weights->arena(), sum_}; }
  Arenas lane_arenas(int lane) const override {
    return {blocks_->weights->arena(), blocks_->gradients->mine(lane)};
  }
  std::span<const Range> owned() const override { return owned_; }

  Accumulate begin(int k, bool) override {
    if (k == 0) clear();
    complete_ = false;
    return Accumulate::overwrite;  // every leaf's gradient is added on its own
  }

  void ready(std::size_t n) override {
    if (n == sum_.size && !std::exchange(complete_, true)) add_round();
  }

  using GradientExchange::finish;
  ExchangeTimes finish(std::span<const Measure> measures,
                       const std::function<void(Range)>& update) override {
    ExchangeTimes times = std::exchange(round_times_, {});
    Stopwatch watch;
    communicator_.barrier();
    times.straggler_wait += watch.lap();
    for (const Measure& measure : measures) sum_measures_->sum(Array::of(measure()));
    blocks_->version->begin();
    for (const Range& range : owned_) {
      update(range);
      blocks_->weights->publish(range);
    }
    times.optimizer = watch.lap();
    communicator_.node_barrier().wait();
    blocks_->weights->fetch();
    blocks_->version->end();
    times.allreduce_exposed += watch.lap();
    return times;
  }

  void spread_weights() override {
    spread_over_nodes(communicator_, *peers_, map_, *blocks_->weights);
  }
  std::uint64_t weights_version() const override { return blocks_->version->value(); }
  ExchangeMemory memory() const override {
    std::size_t own = blocks_->own_bytes();
    for (const Range& range : owned_) own += range.size() * size_of(sum_.dtype);
    for (const auto& buffer : received_) own += buffer.size();
    return {own, blocks_->weights->shared().bytes().size(), blocks_->weights->own_bytes()};
  }
  std::string describe() const override {
    return "gradients of leaves added one by one in the order of images, one copy of the weights a "
           "node";
  }

 private:
  std::size_t leaves_of(const std::vector<int>& ranks) const {
    return ranks.size() * static_cast<std::size_t>(lanes_);
  }

  /// From +0, so that leaves without images, which add +0, change no bit, not even that of -0.
  void clear() {
    for (const Range& own : owned_) {
      const Array slice = sum_.slice(own.begin, own.end);
      std::memset(slice.data, 0, slice.bytes().size());
    }
  }

  /// sum = sum + leaf + leaf + ..., in the order of ranks and lanes, which is that of images.
  void add_round() {
    Stopwatch watch;
    communicator_.barrier();  // of all nodes: a late one is no slow network
    communicator_.node_barrier().wait();
    round_times_.straggler_wait += watch.lap();
    if (!owned_.empty()) {
      const Range own = owned_[0];
      const Array slice = sum_.slice(own.begin, own.end);
      std::vector<Array> terms{slice};
      for (const Array& leaf : leaves_in_order(own)) terms.push_back(leaf);
      sum_arrays_(terms, slice);
    }
    communicator_.node_barrier().wait();  // leaves may be overwritten
    round_times_.allreduce_exposed += watch.lap();
    round_times_.within_ready = round_times_.straggler_wait + round_times_.allreduce_exposed;
  }

  /// This node's leaves lie in its memory; the owners of the same slice on other nodes send theirs.
  std::vector<Array> leaves_in_order(Range own) {
    std::vector<Array> by_rank(static_cast<std::size_t>(communicator_.size() * lanes_));
    const std::vector<Array> mine = blocks_->gradients->slices(own);
    place(by_rank, map_.own(), mine);
    for (int distance = 1; distance < map_.nodes(); ++distance) {
      const int nodes = map_.nodes();
      const int to = (map_.node + distance) % nodes, from = (map_.node + nodes - distance) % nodes;
      place(by_rank, map_.ranks[static_cast<std::size_t>(from)], swap_leaves(to, from, mine, own));
    }
    return by_rank;
  }

  void place(std::vector<Array>& by_rank, const std::vector<int>& ranks,
             const std::vector<Array>& leaves) const {
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const auto lanes = static_cast<std::size_t>(lanes_);
      const auto rank = static_cast<std::size_t>(ranks[i / lanes]);
      by_rank[rank * lanes + i % lanes] = leaves[i];
    }
  }

  /// Leaf by leaf; nodes may have different numbers of them.
  std::vector<Array> swap_leaves(int to, int from, const std::vector<Array>& mine, Range own) {
    const std::vector<int> lane = map_.lane(map_.local);
    const std::size_t theirs = leaves_of(map_.ranks[static_cast<std::size_t>(from)]);
    auto& buffer = received_[static_cast<std::size_t>(from)];
    std::vector<Array> leaves;
    for (std::size_t i = 0; i < theirs; ++i) {
      const std::size_t bytes = own.size() * size_of(sum_.dtype);
      leaves.push_back({buffer.data() + i * bytes, own.size(), sum_.dtype});
    }
    for (std::size_t i = 0; i < std::max(theirs, mine.size()); ++i) {
      peers_->exchange(lane[static_cast<std::size_t>(to)],
                       i < mine.size() ? mine[i].bytes() : std::span<std::byte>(),
                       lane[static_cast<std::size_t>(from)],
                       i < theirs ? leaves[i].bytes() : std::span<std::byte>());
    }
    return leaves;
  }

  Communicator& communicator_;
  NodeMap map_;
  int lanes_;
  SumArrays sum_arrays_;
  std::unique_ptr<NodeBlocks> blocks_;
  Pages sum_memory_;  ///< only the owned slices are ever touched
  Array sum_;
  std::unique_ptr<Peers> peers_;
  PeerGroup node_;
  std::unique_ptr<Allreduce> sum_measures_;
  std::vector<Range> owned_;                      ///< one, or none
  std::vector<std::vector<std::byte>> received_;  ///< by node
  bool complete_ = false;  ///< the micro-batch's gradients are there and added
  ExchangeTimes round_times_;
};

}  // namespace

std::unique_ptr<GradientExchange> make_ordered_exchange(const ExchangeParts& parts,
                                                        const NodeMap& map) {
  return std::make_unique<OrderedExchange>(
      parts, map, allocate_blocks(parts.communicator, parts.layout, parts.lanes));
}

}  // namespace cputrain
