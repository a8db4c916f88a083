#pragma once

#include "system/host_calls.h"

namespace cputrain::sim {

/// The simulated clock, and memory without contents. Large areas, which hold gradients, weights and
/// the like, are all the same one. SMPI knows it and sends from it without copying a byte; what is
/// read from it is garbage. Small areas, which hold counters, are real.
system::HostCalls simulated_host();

}  // namespace cputrain::sim
