#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/allreduce_choice.h"
#include "comm/exchanges.h"

namespace cputrain {

/// An exchange, what was chosen, and what a person should know about it.
struct MadeExchange {
  std::unique_ptr<GradientExchange> exchange;
  AllreduceChoice choice;          ///< never automatic, and its ranges are filled in
  std::vector<std::string> lines;  ///< measurements, and what could not be had
};

/// Makes the exchange that `choice` names. `automatic` takes slices over shared memory, or replicas
/// where a node has no room for them, and says so; between nodes it measures every algorithm at the
/// size of a slice and takes the best. Sharded parameters are for slices alone: then `automatic`
/// throws where there is no room, and the graph must be compiled without. With compression, which
/// needs something that is sent, it takes replicas on one node. Collective. Throws Error(usage) for
/// `shm` on several nodes and where check_compression() does, Error(internal) where shared memory
/// was asked for and cannot be had.
MadeExchange make_exchange(const ExchangeParts&, const AllreduceChoice& choice);

/// The algorithms of these ranges between all ranks, and between this rank and the owners of the
/// same slice on other nodes (itself alone where it owns none). Collective over all ranks.
Channel open_world(Communicator&, const std::vector<SizeRange>&);
Channel open_lane(Communicator&, const NodeMap&, const std::vector<SizeRange>&);

/// The largest of the ranks' numbers.
double slowest_rank(Communicator&, double seconds);

/// The seconds that each of allreduce_algorithms() takes to sum `bytes`, the slowest rank's, median
/// of `repeat`. Collective over all ranks.
struct AlgorithmTime {
  std::string name;
  double seconds;
};
using OpenChannel = std::function<Channel(const std::vector<SizeRange>&)>;
std::vector<AlgorithmTime> measure_algorithms(Communicator&, const OpenChannel&, std::size_t bytes,
                                              int repeat);

}  // namespace cputrain
