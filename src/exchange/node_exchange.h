#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "comm/allreduce.h"
#include "comm/node.h"
#include "compute/parameters/parameters.h"
#include "exchange/basic_exchange.h"
#include "system/pages.h"

namespace cputrain::exchange {

/// The weights of a node: one copy that all of its ranks compute with, or, where ranks keep their
/// own numbers beside them (moving statistics), one that is published and a replica for each.
class NodeWeights {
 public:
  /// A rank's own copy where it needs one, else none.
  static std::unique_ptr<system::Pages> make_replica(const compute::ParameterLayout&);
  /// Collective over the node; Error(internal) on all of its ranks where there is no room.
  NodeWeights(comm::NodeMemory&, const compute::ParameterLayout&,
              std::unique_ptr<system::Pages> replica);

  bool one_copy() const { return !own_; }
  Array shared() const { return {shared_->bytes().data(), size_, dtype_}; }
  /// What programs compute with.
  Array arena() const { return one_copy() ? shared() : Array{own_->bytes().data(), size_, dtype_}; }

  /// From the replica to the node's copy, and what is learnt back; nothing where there is one copy.
  void publish(Range range) const { copy(shared(), arena(), range); }
  void fetch() const { copy(arena(), shared(), {0, learnt_}); }
  /// Each rank of the node calls begin_change() before and end_change() after its part of a change.
  void begin_change() { changes(0).fetch_add(1); }
  void end_change() { changes(1).fetch_add(1); }
  /// Twice the number of changes; odd while one is under way.
  std::uint64_t version() const;
  std::size_t own_bytes() const { return own_ ? own_->bytes().size() : 0; }

 private:
  void copy(const Array& dst, const Array& src, Range range) const;
  /// Those that ranks have begun, or ended.
  std::atomic_ref<std::uint64_t> changes(std::size_t ended) const;

  std::size_t size_, learnt_;
  DType dtype_;
  std::uint64_t ranks_;  ///< of the node
  std::unique_ptr<system::SharedBlock> shared_, changes_;
  std::unique_ptr<system::Pages> own_;
};

/// What those ways do alike whose gradients and weights lie in a node's memory: its ranks own
/// slices which are everything together, and publish there what they have updated.
class NodeMemoryExchange : public BasicExchange {
 public:
  /// Has memory on all nodes or, with the same Error(internal) everywhere, on none. Collective.
  NodeMemoryExchange(comm::Communicator&, const comm::NodeMap&, const compute::ParameterLayout&,
                     int lanes = 1);

  void spread_weights() final;
  std::uint64_t weights_version() const final { return weights_->version(); }

 protected:
  /// What was written to the node's memory is seen then.
  void meet() final;
  void sum_over_owners(const Array& numbers) final { over_owners_->sum(numbers); }
  void begin_update() final { weights_->begin_change(); }
  void publish(Range range) final { weights_->publish(range); }
  void await_weights() final { communicator_.node_memory().barrier(); }
  void end_update() final;

  /// This rank's part of the shared memory.
  std::size_t own_bytes() const { return gradients_->own_bytes() + weights_->own_bytes(); }

  comm::NodeMap map_;
  std::unique_ptr<comm::NodeArrays> gradients_;  ///< one for every lane of every rank
  std::unique_ptr<NodeWeights> weights_;
  std::unique_ptr<comm::PointToPoint> peers_;  // behind the memory, which may be refused

 private:
  /// Makes gradients, and the weights, which are the result.
  std::unique_ptr<NodeWeights> allocate(const compute::ParameterLayout&, int lanes);

  comm::PointToPointGroup node_;
  std::unique_ptr<comm::Allreduce> over_owners_;
};

}  // namespace cputrain::exchange
