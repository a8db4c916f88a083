#include <algorithm>
#include <atomic>
#include <cassert>
#include <utility>

#include "exchange/exchanges.h"
#include "exchange/node_blocks.h"
#include "system/clock.h"

namespace cputrain::exchange {
namespace {

/// A run of elements that this rank updates.
struct OwnedPart {
  Range range;
  bool complete;  ///< a shard: its gradient is the node's already
};

class NodeExchange final : public GradientExchange {
 public:
  NodeExchange(const ExchangeParts& parts, const comm::NodeMap& map,
               std::unique_ptr<GradientSum> between_nodes, std::unique_ptr<NodeBlocks> blocks)
      : communicator_(parts.communicator),
        map_(map),
        sharded_(compute::sharded_parameters(parts.layout)),
        overlaps_(parts.overlap != Overlap::none),
        sum_(overlaps_ ? comm::sum_plainly : parts.sum),
        blocks_(std::move(blocks)),
        gradients_(*blocks_->gradients),
        weights_(*blocks_->weights),
        version_(*blocks_->version),
        between_nodes_(std::move(between_nodes)),
        peers_(parts.communicator.make_peers()),
        thread_peers_(parts.communicator.make_peers()),
        node_(*peers_, map.own()),
        thread_node_(*thread_peers_, map.own()),
        over_owners_(comm::make_tree(node_)),
        wait_for_bucket_(comm::make_tree(thread_node_)),
        buckets_(
            overlaps_ ? bucket_ends(parts.layout, parts.bucket_bytes)
                      : bucket_ends(parts.layout, parts.layout.gradient_size * sizeof(double)),
            [this](Range bucket) { reduce(bucket); }, parts.overlap, parts.on_thread_start) {
    for (std::size_t i = 0; i < buckets_.ends().size(); ++i) {
      for (const OwnedPart& part : owned_parts(buckets_.bucket(i))) owned_.push_back(part.range);
    }
  }

  compute::Arenas arenas() const override { return {weights_.arena(), gradients_.mine()}; }
  std::span<const Range> owned() const override { return owned_; }

  compute::Accumulate begin(int k, bool last) override {
    last_ = last;
    return k == 0 ? compute::Accumulate::overwrite : compute::Accumulate::add;
  }

  void ready(std::size_t n) override {
    if (last_) buckets_.ready(n);
  }

  using GradientExchange::finish;
  ExchangeTimes finish(std::span<const Measure> measures,
                       const std::function<void(Range)>& update) override {
    ExchangeTimes times;
    system::Stopwatch watch;
    communicator_.barrier();
    communicator_.node_barrier().wait();  // what was written to the node's memory is seen now
    times.straggler_wait = watch.lap();
    own_sums_ = 0;
    buckets_.finish();
    times.allreduce_exposed = watch.lap();
    times.waits = times.straggler_wait + times.allreduce_exposed - own_sums_;
    times.waits += sum_measures(measures, *over_owners_);
    version_.begin();
    for (const Range& range : owned_) {
      update(range);
      weights_.publish(range);
    }
    times.optimizer = watch.lap();
    communicator_.node_barrier().wait();
    const double waited = watch.lap();
    weights_.fetch();
    version_.end();
    times.waits += waited;
    times.allreduce_exposed += waited + watch.lap();
    return times;
  }

  void spread_weights() override { spread_over_nodes(communicator_, *peers_, map_, weights_); }

  std::uint64_t weights_version() const override { return version_.value(); }

  GradientSum* gradient_sum() override { return between_nodes_.get(); }

  ExchangeMemory memory() const override {
    return {blocks_->own_bytes() + between_nodes_->memory(), weights_.shared().bytes().size(),
            weights_.own_bytes()};
  }

  std::string describe() const override {
    return std::string("slices over the node's shared memory, one copy of the weights per node") +
           (weights_.one_copy() ? "" : " and a replica per rank (batch normalization)") +
           describe_volume(*between_nodes_, owned_, gradients_.mine().dtype);
  }

 private:
  /// This rank's parts of a bucket: its shards, and a slice of every run between sharded parameters
  /// (a bucket holds these as a whole). The same ones on all nodes.
  std::vector<OwnedPart> owned_parts(Range bucket) const {
    std::vector<OwnedPart> parts;
    const auto add = [&](Range range, bool complete) {
      if (range.size() > 0) parts.push_back({range, complete});
    };
    const auto add_slice = [&](Range run) {
      if (map_.local < map_.lanes()) add(comm::slice_of(run, map_.local, map_.lanes()), false);
    };
    std::size_t position = bucket.begin;
    for (const compute::Parameter& parameter : sharded_) {
      if (parameter.range.begin < bucket.begin || parameter.range.end > bucket.end) continue;
      add_slice({position, parameter.range.begin});
      add(compute::shard_of(parameter, map_.local, map_.local_size()), true);
      position = parameter.range.end;
    }
    add_slice({position, bucket.end});
    return parts;
  }

  /// Sums this rank's parts of a bucket over the node, then over all nodes.
  void reduce(Range bucket) {
    if (overlaps_) wait_for_ranks();
    for (const auto& [range, complete] : owned_parts(bucket)) {
      const Array sum = gradients_.mine().slice(range.begin, range.end);
      const system::Stopwatch watch;
      if (!complete) sum_(gradients_.slices(range), sum);
      if (!overlaps_) own_sums_ += watch.seconds();  // else of another thread, which is waited for
      between_nodes_->sum(range, sum);
    }
  }

  /// On the thread that overlaps: until the bucket is ready on all ranks of the node.
  void wait_for_ranks() {
    float here = 1;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    wait_for_bucket_->sum(Array::of<float>({&here, 1}));
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  comm::Communicator& communicator_;
  comm::NodeMap map_;
  std::vector<compute::Parameter> sharded_;
  bool overlaps_, last_ = true;
  double own_sums_ = 0;  ///< seconds of this step
  comm::SumArrays sum_;
  std::unique_ptr<NodeBlocks> blocks_;
  comm::NodeArrays& gradients_;
  NodeWeights& weights_;
  comm::NodeVersion& version_;
  std::unique_ptr<GradientSum> between_nodes_;
  std::unique_ptr<comm::Peers> peers_, thread_peers_;
  comm::PeerGroup node_, thread_node_;
  std::unique_ptr<comm::Allreduce> over_owners_, wait_for_bucket_;
  std::vector<Range> owned_;
  Buckets buckets_;  // last: its thread uses the others
};

}  // namespace

std::unique_ptr<GradientExchange> make_node_exchange(const ExchangeParts& parts,
                                                     const comm::NodeMap& map,
                                                     std::unique_ptr<GradientSum> between_nodes) {
  // A shard has an owner on every node only where all nodes cut alike.
  assert(compute::sharded_parameters(parts.layout).empty() || map.even());
  return std::make_unique<NodeExchange>(parts, map, std::move(between_nodes),
                                        allocate_blocks(parts.communicator, parts.layout));
}

}  // namespace cputrain::exchange
