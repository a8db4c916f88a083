#include "backends/sim/simulator.h"

namespace cputrain::sim {

simulation::Simulator find_simulator() {
  return {.smpirun = "",
          .program = "",
          .missing =
              "this program was built without the simulator; build it with "
              "-DCPUTRAIN_SMPI=ON, which needs libsimgrid-dev"};
}

}  // namespace cputrain::sim
