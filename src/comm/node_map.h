#pragma once

#include <vector>

#include "comm/communicator.h"

namespace cputrain::comm {

/// Which ranks share which node.
struct NodeMap {
  std::vector<std::vector<int>> ranks;  ///< by node, in the order of local ranks
  int node = 0;                         ///< this rank's
  int local = 0;                        ///< this rank's place in it

  int nodes() const { return static_cast<int>(ranks.size()); }
  int local_size() const { return static_cast<int>(own().size()); }
  const std::vector<int>& own() const { return ranks[static_cast<std::size_t>(node)]; }
  /// Slices that a gradient is cut into on every node: as many as the smallest node has ranks, so
  /// that each slice has an owner on every node.
  int lanes() const;
  /// Whether all nodes have the same number of ranks.
  bool even() const;
  /// The node of each rank.
  std::vector<int> by_rank() const;
  /// The ranks that own slice `lane`, one a node.
  std::vector<int> lane(int lane) const;
};

/// Collective. Nodes come in the order of their first ranks.
NodeMap read_node_map(Communicator&);

}  // namespace cputrain::comm
