#pragma once

#include <vector>

#include "system/placement/machine.h"

struct hwloc_topology;

namespace cputrain::topology {

/// Reads what the operating system and hwloc know about this machine and this process. To be
/// called on the main thread before it starts others. Throws Error(internal) when hwloc fails.
placement::Machine read_machine();

/// A machine by a loaded tree of hwloc, for a process that may run on these hardware threads:
/// cores, NUMA nodes, caches, memory. Names, quota and limits stay empty.
placement::Machine machine_of(hwloc_topology* tree, const std::vector<int>& allowed_cpus);

}  // namespace cputrain::topology
