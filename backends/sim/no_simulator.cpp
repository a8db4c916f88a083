#include "backends/sim/simulator.h"

namespace cputrain::sim {

simulation::Simulator find_simulator() {
  return {.smpirun = "",
          .program = "",
          .missing =
              "this program was built without the simulator; in its sources `scripts/setup "
              "simulator` and then `scripts/build` add it (-DCPUTRAIN_SMPI=ON, libsimgrid-dev)"};
}

}  // namespace cputrain::sim
