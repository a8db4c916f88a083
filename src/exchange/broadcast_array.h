#pragma once

#include "comm/communicator.h"
#include "compute/memory.h"

namespace cputrain::exchange {

/// Gives rank `root`'s array to all ranks, each of which has one as long in its memory; by way of
/// the host where that is another. Collective.
void broadcast_array(comm::Communicator&, compute::Memory&, const Array&, int root);

}  // namespace cputrain::exchange
