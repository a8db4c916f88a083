#pragma once

#include <functional>
#include <vector>

#include "comm/allreduce/allreduce_choice.h"
#include "comm/channel.h"
#include "comm/communicator.h"
#include "comm/node_map.h"

namespace cputrain::comm {

/// The algorithms of these ranges between all ranks, and between this rank and the owners of the
/// same slice on other nodes (itself alone where it owns none). Collective over all ranks.
Channel open_world(Communicator&, const std::vector<SizeRange>&);
Channel open_lane(Communicator&, const NodeMap&, const std::vector<SizeRange>&);

using OpenChannel = std::function<Channel(const std::vector<SizeRange>&)>;

}  // namespace cputrain::comm
