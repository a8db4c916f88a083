#pragma once

#include <vector>

namespace cputrain::topology {

/// Binds the calling thread, and those that it starts from now on, to these hardware threads.
/// False where the system refuses (a container may); the thread then runs where it did.
bool bind_this_thread(const std::vector<int>& cpus);

}  // namespace cputrain::topology
