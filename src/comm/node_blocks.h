#pragma once

#include <functional>
#include <memory>

#include "comm/communicator.h"
#include "comm/node_arrays.h"
#include "comm/node_map.h"
#include "comm/node_weights.h"

namespace cputrain {

/// The shared memory of one exchange.
struct NodeBlocks {
  std::unique_ptr<NodeArrays> gradients;  ///< of every rank, and of every lane of it
  std::unique_ptr<NodeWeights> weights;
  std::unique_ptr<NodeVersion> version;

  /// Of this rank.
  std::size_t own_bytes() const { return gradients->own_bytes() + weights->own_bytes(); }
};

/// What one rank could not have, no rank has: where `make` throws an Error on some ranks, `undo`
/// lets go of what it made on all of them, which then throw the same Error(internal). Collective.
void attempt_together(Communicator&, const std::function<void()>& make,
                      const std::function<void()>& undo);

/// On all nodes or, with the same Error(internal) everywhere, on none. Collective over all ranks.
std::unique_ptr<NodeBlocks> allocate_blocks(Communicator&, const ParameterLayout&, int lanes = 1);

/// Gives the weights of rank 0 to all nodes and ranks. Collective over all ranks.
void spread_over_nodes(Communicator&, Peers&, const NodeMap&, const NodeWeights&);

}  // namespace cputrain
