#pragma once

#include <memory>

#include "comm/allreduce.h"
#include "comm/peers.h"

namespace cputrain::comm {

/// An algorithm with the channel it works on.
struct Channel {
  std::unique_ptr<Peers> peers;
  std::unique_ptr<Peers> group;  ///< some of `peers`; null: the algorithm is between all
  std::unique_ptr<Allreduce> allreduce;

  /// Those that `allreduce` sums over.
  Peers& members() const { return group ? *group : *peers; }
};

}  // namespace cputrain::comm
