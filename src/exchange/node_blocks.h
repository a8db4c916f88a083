#pragma once

#include <memory>

#include "comm/agreement.h"
#include "comm/communicator.h"
#include "comm/node_arrays.h"
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

}  // namespace cputrain::exchange
