#pragma once

#include <functional>
#include <optional>

#include "comm/communicator.h"

namespace cputrain::threads {

/// Runs `body` on `size` threads of this process, each with the communicator of its rank, and
/// returns when all are done. For tests: the contracts of MPI ranks without processes, under
/// sanitizers and a debugger.
///
/// When a rank throws, the others leave whatever they wait for, and the first exception is
/// rethrown here. Ranks that make different calls get Error(internal) instead of waiting for ever.
/// Communicator::abort throws on its rank, since it must not end the test program.
/// `ranks_a_node` makes several nodes, which share no memory; else there is one.
void run_ranks(int size, const std::function<void(comm::Communicator&)>& body,
               std::optional<int> ranks_a_node = {});

}  // namespace cputrain::threads
