#pragma once

#include <functional>
#include <memory>

#include "comm/agreement.h"
#include "comm/communicator.h"
#include "comm/node_arrays.h"
#include "comm/node_map.h"
#include "exchange/exchange.h"
#include "exchange/node_weights.h"

namespace cputrain::exchange {

/// The shared memory of one exchange.
struct NodeBlocks {
  std::unique_ptr<comm::NodeArrays> gradients;  ///< of every rank, and of every lane of it
  std::unique_ptr<NodeWeights> weights;
  std::unique_ptr<comm::NodeVersion> version;

  /// Of this rank.
  std::size_t own_bytes() const { return gradients->own_bytes() + weights->own_bytes(); }
};

/// On all nodes or, with the same Error(internal) everywhere, on none. Collective over all ranks.
std::unique_ptr<NodeBlocks> allocate_blocks(comm::Communicator&, const compute::ParameterLayout&,
                                            int lanes = 1);

/// Gives the weights of rank 0 to all nodes and ranks. Collective over all ranks.
void spread_over_nodes(comm::Communicator&, comm::Peers&, const comm::NodeMap&, const NodeWeights&);

/// Has each measure taken and summed over the owners of this node, which own everything; the
/// seconds that the sums took, which wait for the others.
double sum_measures(std::span<const Measure>, comm::Allreduce& over_owners);

}  // namespace cputrain::exchange
