#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "comm/node.h"
#include "exchange/exchanges.h"
#include "exchange/node_exchange.h"
#include "system/clock.h"
#include "system/pages.h"

namespace cputrain::exchange {
namespace {

class OrderedExchange final : public NodeMemoryExchange {
 public:
  OrderedExchange(const ExchangeParts& parts, const comm::NodeMap& map)
      : NodeMemoryExchange(parts.communicator, map, parts.layout, parts.lanes),
        lanes_(parts.lanes),
        sum_arrays_(parts.sum),
        add_products_(parts.add_products),
        layout_(parts.layout),
        sum_memory_(parts.layout.gradient_size * size_of(parts.layout.dtype)),
        sum_{sum_memory_.bytes().data(), parts.layout.gradient_size, parts.layout.dtype} {
    if (map.local < map.lanes()) {
      owned_.push_back(comm::slice_of({0, sum_.size}, map.local, map.lanes()));
    }
    if (!owned_.empty() && owned_[0].size() == 0) owned_.clear();
    for (const Range& own : owned_) gradient_parts_ = compute::parts_of(layout_, own);
    for (const auto& ranks : map.ranks) {
      auto& chunks = received_.emplace_back();
      const std::size_t count = owned_.empty() || ranks == map.own() ? 0 : chunks_of(ranks);
      for (std::size_t i = 0; i < count; ++i) {
        chunks.emplace_back(sum_memory_.bytes().size(), /*sparsely=*/true);
      }
    }
  }

  compute::Arenas arenas() const override { return {weights_->arena(), sum_}; }
  compute::Arenas lane_arenas(int lane) const override {
    return {weights_->arena(), gradients_->mine(lane)};
  }

  compute::Accumulate begin(int k, bool) override {
    if (k == 0) clear();
    complete_ = false;
    return compute::Accumulate::overwrite;  // every chunk's gradient is added on its own
  }

  void ready(std::size_t n, compute::Event* after) override {
    compute::wait_for(after);
    if (n == sum_.size && !std::exchange(complete_, true)) add_round();
  }

  ExchangeMemory memory() const override {
    std::size_t own = own_bytes();
    for (const Range& range : owned_) own += range.size() * size_of(sum_.dtype);
    for (const auto& chunks : received_) own += chunks.size() * needed_bytes();
    return {own, weights_->shared().bytes().size(), weights_->own_bytes()};
  }
  std::string describe() const override {
    return "gradients of chunks added one by one in the order of images, one copy of the weights "
           "per node";
  }

 private:
  std::size_t chunks_of(const std::vector<int>& ranks) const {
    return ranks.size() * static_cast<std::size_t>(lanes_);
  }

  /// From +0, so that leaves without images, which add +0, change no bit, not even that of -0.
  void clear() {
    for (const Range& own : owned_) {
      const Array slice = sum_.slice(own.begin, own.end);
      std::memset(slice.data, 0, slice.bytes().size());
    }
  }

  /// sum = sum + chunk + chunk + ..., in the order of ranks and lanes, which is that of images.
  void add_round() {
    system::Stopwatch watch;
    meet();  // all nodes: a late one is no slow network
    const double met = watch.lap();
    if (!owned_.empty()) add_chunks(chunks_in_order());
    const double adds = watch.lap();
    communicator_.node_memory().barrier();  // chunks may be overwritten
    const double waited = watch.lap();
    earlier_.straggler_wait += met;
    earlier_.waits += met + waited;
    earlier_.allreduce_exposed += adds + waited;
    earlier_.within_ready += met + adds + waited;
  }

  void add_chunks(const std::vector<Array>& chunks) const {
    for (const compute::GradientPart& part : gradient_parts_) {
      const Array sum = sum_.slice(part.range.begin, part.range.end);
      std::vector<Array> terms;
      if (part.factored) {
        for (const Array& chunk : chunks) {
          terms.push_back(chunk.slice(part.factored->range.begin, part.factored->range.end));
        }
        add_products_(*part.factored->factors, terms, part.of_product(), sum);
      } else {
        terms.push_back(sum);
        for (const Array& chunk : chunks) {
          terms.push_back(chunk.slice(part.range.begin, part.range.end));
        }
        sum_arrays_(terms, sum);
      }
    }
  }

  /// This node's chunks lie in its memory; the owners of the same slice on other nodes send of
  /// theirs what the slice needs.
  std::vector<Array> chunks_in_order() {
    std::vector<Array> by_rank(static_cast<std::size_t>(communicator_.size() * lanes_));
    const std::vector<Array> mine = gradients_->slices({0, sum_.size});
    place(by_rank, map_.own(), mine);
    for (int distance = 1; distance < map_.nodes(); ++distance) {
      const int nodes = map_.nodes();
      const int to = (map_.node + distance) % nodes, from = (map_.node + nodes - distance) % nodes;
      place(by_rank, map_.ranks[static_cast<std::size_t>(from)], swap_chunks(to, from, mine));
    }
    return by_rank;
  }

  void place(std::vector<Array>& by_rank, const std::vector<int>& ranks,
             const std::vector<Array>& chunks) const {
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const auto lanes = static_cast<std::size_t>(lanes_);
      const auto rank = static_cast<std::size_t>(ranks[i / lanes]);
      by_rank[rank * lanes + i % lanes] = chunks[i];
    }
  }

  /// Chunk by chunk; nodes may have different numbers of them.
  std::vector<Array> swap_chunks(int to, int from, const std::vector<Array>& mine) {
    const std::vector<int> lane = map_.lane(map_.local);
    std::vector<Array> chunks;
    for (system::Pages& memory : received_[static_cast<std::size_t>(from)]) {
      chunks.push_back({memory.bytes().data(), sum_.size, sum_.dtype});
    }
    for (std::size_t i = 0; i < std::max(chunks.size(), mine.size()); ++i) {
      for_needed([&](Range range) {
        const auto part = [&](const std::vector<Array>& of) {
          return i < of.size() ? of[i].slice(range.begin, range.end).bytes()
                               : std::span<std::byte>();
        };
        peers_->exchange(lane[static_cast<std::size_t>(to)], part(mine),
                         lane[static_cast<std::size_t>(from)], part(chunks));
      });
    }
    return chunks;
  }

  template <class F>
  void for_needed(const F& f) const {
    for (const compute::GradientPart& part : gradient_parts_) {
      for (const Range& range : compute::needed_for(part)) f(range);
    }
  }

  /// For one chunk, in pages of 4 KiB: a range may touch two more than it fills.
  std::size_t needed_bytes() const {
    constexpr std::size_t kPage = 4096;
    std::size_t bytes = 0;
    for_needed([&](Range range) { bytes += range.size() * size_of(sum_.dtype) + 2 * kPage; });
    return bytes;
  }

  int lanes_;
  comm::SumArrays sum_arrays_;
  compute::AddProducts add_products_;
  compute::ParameterLayout layout_;
  system::Pages sum_memory_;  ///< only the owned slices are ever touched
  Array sum_;
  std::vector<compute::GradientPart> gradient_parts_;  ///< what is owned; points into layout_
  /// Arenas of other nodes' chunks, of which only what the slice needs is ever touched; by node.
  std::vector<std::deque<system::Pages>> received_;
  bool complete_ = false;  ///< the micro-batch's gradients are there and added
};

}  // namespace

std::unique_ptr<GradientExchange> make_ordered_exchange(const ExchangeParts& parts,
                                                        const comm::NodeMap& map) {
  return std::make_unique<OrderedExchange>(parts, map);
}

}  // namespace cputrain::exchange
