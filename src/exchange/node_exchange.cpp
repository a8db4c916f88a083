#include "exchange/node_exchange.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "exchange/exchanges.h"
#include "system/clock.h"

namespace cputrain::exchange {
namespace {

std::size_t arena_bytes(const compute::ParameterLayout& layout) {
  return layout.arena_size * size_of(layout.dtype);
}

}  // namespace

std::unique_ptr<system::Pages> NodeWeights::make_replica(const compute::ParameterLayout& layout) {
  if (std::ranges::none_of(layout.parameters, &compute::Parameter::averaged)) return nullptr;
  return std::make_unique<system::Pages>(arena_bytes(layout));
}

NodeWeights::NodeWeights(comm::NodeMemory& memory, const compute::ParameterLayout& layout,
                         std::unique_ptr<system::Pages> replica)
    : size_(layout.arena_size),
      learnt_(layout.gradient_size),
      dtype_(layout.dtype),
      ranks_(static_cast<std::uint64_t>(memory.local_size())),
      shared_(memory.allocate(arena_bytes(layout))),
      changes_(memory.allocate(2 * sizeof(std::uint64_t))),
      own_(std::move(replica)) {}

std::atomic_ref<std::uint64_t> NodeWeights::changes(std::size_t ended) const {
  return std::atomic_ref(reinterpret_cast<std::uint64_t*>(changes_->bytes().data())[ended]);
}

std::uint64_t NodeWeights::version() const {
  // In this order: a change that begins between the two readings looks unfinished.
  const std::uint64_t ended = changes(1).load(), begun = changes(0).load();
  const bool whole = begun == ended && begun % ranks_ == 0;
  return 2 * (begun / ranks_) + (whole ? 0 : 1);
}

void NodeWeights::copy(const Array& dst, const Array& src, Range range) const {
  if (one_copy() || range.size() == 0) return;
  const Array to = dst.slice(range.begin, range.end);
  std::memcpy(to.data, src.slice(range.begin, range.end).data, to.bytes().size());
}

NodeMemoryExchange::NodeMemoryExchange(comm::Communicator& communicator, const comm::NodeMap& map,
                                       const compute::ParameterLayout& layout, int lanes)
    : BasicExchange(communicator),
      map_(map),
      weights_(allocate(layout, lanes)),
      peers_(communicator.make_point_to_point()),
      node_(*peers_, map.own()),
      over_owners_(comm::make_tree(node_)) {}

std::unique_ptr<NodeWeights> NodeMemoryExchange::allocate(const compute::ParameterLayout& layout,
                                                          int lanes) {
  std::unique_ptr<system::Pages> replica;
  std::unique_ptr<NodeWeights> weights;
  const auto undo = [&] {
    weights.reset();
    gradients_.reset();
  };
  // A rank's own memory first: one rank alone may lack it, while the others wait for shared memory.
  comm::attempt_together(
      communicator_, [&] { replica = NodeWeights::make_replica(layout); }, undo);
  comm::attempt_together(
      communicator_,
      [&] {
        comm::NodeMemory& memory = communicator_.node_memory();
        gradients_ = std::make_unique<comm::NodeArrays>(
            memory, layout.gradient_size, layout.dtype, lanes,
            compute::used_gradients(layout, memory.local_rank(), memory.local_size()));
        weights = std::make_unique<NodeWeights>(memory, layout, std::move(replica));
      },
      undo);
  return weights;
}

void NodeMemoryExchange::meet() {
  communicator_.barrier();
  communicator_.node_memory().barrier();
}

void NodeMemoryExchange::end_update() {
  weights_->fetch();
  weights_->end_change();
}

void NodeMemoryExchange::spread_weights() {
  const NodeWeights& weights = *weights_;
  if (!weights.one_copy()) return communicator_.broadcast(weights.arena().bytes(), 0);
  if (map_.local == 0) {
    comm::PointToPointGroup firsts(*peers_, map_.lane(0));
    const auto bytes = weights.shared().bytes();
    if (map_.node > 0) firsts.receive(0, bytes);
    for (int node = 1; map_.node == 0 && node < map_.nodes(); ++node) firsts.send(node, bytes);
  }
  communicator_.node_memory().barrier();
}

namespace {

class NodeExchange final : public NodeMemoryExchange {
 public:
  NodeExchange(const ExchangeParts& parts, const comm::NodeMap& map,
               std::unique_ptr<GradientSum> between_nodes)
      : NodeMemoryExchange(parts.communicator, map, parts.layout),
        sharded_(compute::sharded_parameters(parts.layout)),
        overlaps_(parts.overlap),
        sum_(overlaps_ ? comm::sum_plainly : parts.sum),
        between_nodes_(std::move(between_nodes)),
        thread_peers_(parts.communicator.make_point_to_point()),
        thread_node_(*thread_peers_, map.own()),
        wait_for_bucket_(comm::make_tree(thread_node_)),
        buckets_(
            overlaps_ ? bucket_ends(parts.layout, parts.bucket_bytes)
                      : bucket_ends(parts.layout, parts.layout.gradient_size * sizeof(double)),
            [this](Range bucket, compute::Event* after) { return reduce_bucket(bucket, after); },
            parts.overlap, parts.on_thread_start) {
    for (std::size_t i = 0; i < buckets_.ends().size(); ++i) {
      for_slices(buckets_.bucket(i), [&](Range range, bool) { owned_.push_back(range); });
    }
  }

  compute::Arenas arenas() const override { return {weights_->arena(), gradients_->mine()}; }
  KeptParts* kept_parts() override { return between_nodes_->kept_parts(); }

  ExchangeMemory memory() const override {
    const NodeWeights& weights = *weights_;
    return {own_bytes() + between_nodes_->memory(), weights.shared().bytes().size(),
            weights.own_bytes()};
  }

  std::string describe() const override {
    return std::string("slices over the node's shared memory, one copy of the weights per node") +
           (weights_->one_copy() ? "" : " and a replica per rank (batch normalization)") +
           describe_volume(*between_nodes_, owned_, gradients_->mine().dtype);
  }

 private:
  /// f(range, is a shard) for this rank's slices of a bucket: its shards, whose gradients are the
  /// node's already, and one of what lies between sharded parameters (a bucket holds these as a
  /// whole). The same ones on all nodes.
  template <class F>
  void for_slices(Range bucket, const F& f) const {
    const auto add = [&](Range range, bool shard) {
      if (range.size() > 0) f(range, shard);
    };
    const auto add_slice = [&](Range between) {
      if (map_.local < map_.lanes()) add(comm::slice_of(between, map_.local, map_.lanes()), false);
    };
    std::size_t position = bucket.begin;
    for (const compute::Parameter& parameter : sharded_) {
      if (parameter.range.begin < bucket.begin || parameter.range.end > bucket.end) continue;
      add_slice({position, parameter.range.begin});
      add(compute::shard_of(parameter, map_.local, map_.local_size()), true);
      position = parameter.range.end;
    }
    add_slice({position, bucket.end});
  }

  void finish_gradients(std::size_t n, compute::Event* after) override { buckets_.ready(n, after); }

  double reduce() override {
    own_sums_ = 0;
    buckets_.finish();
    return own_sums_;
  }

  /// Sums this rank's slices of a bucket over the node, then over all nodes.
  compute::Event* reduce_bucket(Range bucket, compute::Event* after) {
    compute::wait_for(after);
    if (overlaps_) wait_for_ranks();
    for_slices(bucket, [&](Range range, bool shard) {
      const Array sum = gradients_->mine().slice(range.begin, range.end);
      const system::Stopwatch watch;
      if (!shard) sum_(gradients_->slices(range), sum);
      if (!overlaps_) own_sums_ += watch.seconds();  // else of another thread, which is waited for
      between_nodes_->sum(range, sum);
    });
    return nullptr;
  }

  /// On the thread that overlaps: until the bucket is ready on all ranks of the node.
  void wait_for_ranks() {
    float here = 1;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    wait_for_bucket_->sum(Array::of<float>({&here, 1}));
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  std::vector<compute::Parameter> sharded_;
  bool overlaps_;
  double own_sums_ = 0;  ///< seconds of this step
  comm::SumArrays sum_;
  std::unique_ptr<GradientSum> between_nodes_;
  std::unique_ptr<comm::PointToPoint> thread_peers_;
  comm::PointToPointGroup thread_node_;
  std::unique_ptr<comm::Allreduce> wait_for_bucket_;
  Buckets buckets_;  // last: its thread uses the others
};

}  // namespace

std::unique_ptr<GradientExchange> make_node_exchange(const ExchangeParts& parts,
                                                     const comm::NodeMap& map,
                                                     std::unique_ptr<GradientSum> between_nodes) {
  // A shard has an owner on every node only where all nodes cut alike.
  assert(compute::sharded_parameters(parts.layout).empty() || map.even());
  return std::make_unique<NodeExchange>(parts, map, std::move(between_nodes));
}

}  // namespace cputrain::exchange
