#include "backends/sim/simulator.h"

#include <unistd.h>

#include <filesystem>

namespace cputrain::sim {

simulation::Simulator find_simulator() {
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto folder = own.parent_path();
  simulation::Simulator found{.smpirun = (folder / "smpirun").string(),  // as a wheel has it
                              .program = (folder / "cputrain-smpi").string(),
                              .missing = ""};
  if (access(found.smpirun.c_str(), X_OK) != 0) found.smpirun = CPUTRAIN_SMPIRUN;
  if (access(found.program.c_str(), R_OK) != 0) {
    found.missing = found.program +
                    " is not there (it lies beside cputrain); build both, or install the package "
                    "cputrain-simulator";
  } else if (access(found.smpirun.c_str(), X_OK) != 0) {
    found.missing = found.smpirun + " is not there; install libsimgrid-dev";
  }
  return found;
}

}  // namespace cputrain::sim
