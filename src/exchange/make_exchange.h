#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/allreduce_choice.h"
#include "exchange/exchanges.h"

namespace cputrain::exchange {

/// An exchange, what was chosen, and what a person should know about it.
struct MadeExchange {
  std::unique_ptr<GradientExchange> exchange;
  comm::AllreduceChoice choice;       ///< never automatic, and its ranges are filled in
  std::vector<std::string> lines;     ///< measurements
  std::vector<std::string> warnings;  ///< what could not be had, or is not worth its cost
};

/// Makes the exchange that `choice` names. `automatic` measures, chooses, and prints its choice. On
/// one node it takes slices over shared memory, or replicas where messages are twice as quick
/// (slices spare memory and updates besides) or there is no room for shared memory; over several
/// nodes slices, and of all algorithms the best at the size of a slice. Sharded parameters are for
/// slices alone: then `automatic` throws where there is no room, and the graph must be compiled
/// without. With compression, which needs something that is sent, it takes replicas on one node.
/// Collective. Where the arenas lie on devices, it takes replicas, and the first way of
/// device_path.h. Throws Error(usage) for `shm` on several nodes, where check_compression() does,
/// for slices, a server or lanes where arenas are not the host's, and for a way between devices
/// that cannot be gone; Error(internal) where shared memory was asked for and cannot be had.
MadeExchange make_exchange(const ExchangeParts&, const comm::AllreduceChoice& choice);

}  // namespace cputrain::exchange
