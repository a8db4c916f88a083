#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/allreduce.h"
#include "comm/allreduce_choice.h"
#include "comm/communicator.h"
#include "comm/node_arrays.h"
#include "comm/point_to_point.h"

namespace cputrain::comm {

/// An algorithm with the channel it works on.
struct Channel {
  std::unique_ptr<PointToPoint> peers;
  std::unique_ptr<PointToPoint> group;  ///< some of `peers`; null: the algorithm is between all
  std::unique_ptr<Allreduce> allreduce;

  /// Those that `allreduce` sums over.
  PointToPoint& members() const { return group ? *group : *peers; }
};

/// The algorithms of these ranges between all ranks, and between this rank and the owners of the
/// same slice on other nodes (itself alone where it owns none). Collective over all ranks.
Channel open_world(Communicator&, const std::vector<SizeRange>&);
Channel open_lane(Communicator&, const NodeMap&, const std::vector<SizeRange>&);

using OpenChannel = std::function<Channel(const std::vector<SizeRange>&)>;

}  // namespace cputrain::comm
