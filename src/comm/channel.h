#pragma once

#include <memory>

#include "comm/allreduce/allreduce.h"
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

}  // namespace cputrain::comm
