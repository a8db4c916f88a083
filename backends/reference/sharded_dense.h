#pragma once

#include "backends/reference/layers.h"
#include "comm/communicator.h"
#include "compute/parameters/parameters.h"
#include "exchange/shared_layer.h"

namespace cputrain::reference {

/// A dense layer that the ranks of a node compute together, in the rounds of SharedLayer.
template <class T>
class ShardedDense {
 public:
  /// `images`: the most that this rank runs at once. Collective over the node.
  ShardedDense(comm::Communicator& node, const compute::Parameter& kernel, std::size_t images);

  void forward(const LayerArgs<T>&);
  /// Adds to own rows of the gradient; `sends_back`: on all ranks alike, something before the layer
  /// learns.
  void backward(const LayerArgs<T>&, bool sends_back);
  double waited() const { return layer_.waited(); }

 private:
  std::size_t in_, out_;
  Range rows_;  ///< this rank's in the kernel
  exchange::SharedLayer layer_;
};

}  // namespace cputrain::reference
