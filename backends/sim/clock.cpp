// system/clock.h on the simulated clock.
#include "system/clock.h"

#include <simgrid/s4u/Engine.hpp>

namespace cputrain::system {

double steady_seconds() { return simgrid::s4u::Engine::get_clock(); }

}  // namespace cputrain::system
