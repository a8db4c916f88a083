#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "scaling/simulation/job.h"

namespace cputrain::simulation {

/// The program that computes cells, and what starts it.
struct Simulator {
  std::string smpirun, program;  ///< paths
  std::string missing;           ///< why there is none; empty where there is
};

/// What hears of the cells' progress.
struct CellWatch {
  std::function<void(std::size_t cell)> done;
  std::function<bool()> stopped;  ///< whether to end what runs and start no more
};

/// Runs cells, up to `at_once` side by side, each in a process of its own, with their files in a
/// folder (results among them). Results are in the order of the cells; what went wrong in one is
/// its failure, and so is a stop.
std::vector<SimulationResult> run_cells(const Simulator&, const std::filesystem::path& folder,
                                        const std::vector<SimulationJob>&, int at_once,
                                        const CellWatch&);

}  // namespace cputrain::simulation
