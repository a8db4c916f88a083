#pragma once

#include "core/placement.h"

namespace cputrain {

/// Reads what the operating system and hwloc know about this machine and this process. To be
/// called on the main thread before it starts others. Throws Error(internal) when hwloc fails.
Machine read_machine();

}  // namespace cputrain
