#pragma once

#include "simulation/simulator.h"

namespace cputrain {

/// Where smpirun and cputrain-smpi are; the reason where this build or machine has none.
Simulator find_simulator();

}  // namespace cputrain
