// core/clock.h on the simulated clock.
#include "core/clock.h"

#include <simgrid/s4u/Engine.hpp>

namespace cputrain {

double steady_seconds() { return simgrid::s4u::Engine::get_clock(); }

}  // namespace cputrain
