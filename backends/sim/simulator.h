#pragma once

#include "scaling/simulation/simulator.h"

namespace cputrain::sim {

/// Where smpirun and cputrain-smpi are; the reason where this build or machine has none.
simulation::Simulator find_simulator();

}  // namespace cputrain::sim
