#pragma once

#include <memory>

#include "comm/allreduce/allreduce.h"
#include "comm/node_arrays.h"
#include "comm/node_map.h"
#include "exchange/basic_exchange.h"
#include "exchange/node_weights.h"

namespace cputrain::exchange {

/// The shared memory of one exchange.
struct NodeBlocks {
  std::unique_ptr<comm::NodeArrays> gradients;  ///< one for every lane of every rank
  std::unique_ptr<NodeWeights> weights;
  std::unique_ptr<comm::NodeVersion> version;

  /// This rank's part.
  std::size_t own_bytes() const { return gradients->own_bytes() + weights->own_bytes(); }
};

/// What those ways do alike whose gradients and weights lie in a node's memory: its ranks own
/// slices which are everything together, and publish there what they have updated.
class NodeMemoryExchange : public BasicExchange {
 public:
  /// Has memory on all nodes or, with the same Error(internal) everywhere, on none. Collective.
  NodeMemoryExchange(comm::Communicator&, const comm::NodeMap&, const compute::ParameterLayout&,
                     int lanes = 1);

  void spread_weights() final;
  std::uint64_t weights_version() const final { return blocks_->version->value(); }

 protected:
  /// What was written to the node's memory is seen then.
  void meet() final;
  void sum_over_owners(const Array& numbers) final { over_owners_->sum(numbers); }
  void begin_update() final { blocks_->version->begin(); }
  void publish(Range range) final { blocks_->weights->publish(range); }
  void await_weights() final { communicator_.node_barrier().wait(); }
  void end_update() final;

  comm::NodeMap map_;
  std::unique_ptr<NodeBlocks> blocks_;
  std::unique_ptr<comm::PointToPoint> peers_;

 private:
  comm::PointToPointGroup node_;
  std::unique_ptr<comm::Allreduce> over_owners_;
};

}  // namespace cputrain::exchange
