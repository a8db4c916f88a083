#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/budget.h"
#include "scaling/simulation/platform.h"

namespace cputrain::simulation {

/// One cell for cputrain-smpi, which it reads from a file.
struct SimulationJob {
  int ranks = 1, threads = 1;          ///< threads of each rank
  std::vector<std::string> arguments;  ///< `train`'s, as they would be typed
  Platform platform;
  CostTable costs;
  int classes = 2;
  std::size_t images_per_epoch = 0;
  std::size_t validation_images = 0;  ///< that a training would keep in memory beside them
  int steps = 1;                      ///< in each repeat
  int repeats = 1;                    ///< with other disturbances
  std::uint64_t seed = 0;
  std::string result;  ///< file that rank 0 writes

  int nodes() const { return nodes_used(platform, ranks, threads); }
};

/// Some steps. The budget is the mean over ranks and adds up to the seconds.
struct SimulatedSteps {
  double seconds = 0;
  Budget budget{};
  double memory_stall = 0;  ///< part of them that memory bandwidth took, mean over ranks
};

/// What became of it, and how its ranks worked.
struct SimulationResult {
  int images_at_once = 1;              ///< most of a rank
  std::vector<std::string> sharded{};  ///< dense layers that the ranks of a node compute together
  std::string failure{};  ///< why there are no seconds: what a real run would have said
  std::string exchange{};
  std::size_t steps = 0;   ///< in each repeat
  std::size_t images = 0;  ///< in them, over all ranks
  std::vector<SimulatedSteps> repeats{};
};

void write_job(const std::filesystem::path&, const SimulationJob&);
SimulationJob read_job(const std::filesystem::path&);
void write_result(const std::filesystem::path&, const SimulationResult&);
SimulationResult read_result(const std::filesystem::path&);

/// SimGrid's description of so many nodes, and a line a rank with its host's name.
/// Within a node messages and what is charged as memory traffic share one link, through which a
/// core alone gets `core_gbs`.
std::string simgrid_platform(const Platform&, int nodes);
std::string simgrid_hosts(int nodes, int ranks);

/// The program that computes cells, and what starts it.
struct Simulator {
  std::string smpirun, program;  ///< paths
  std::string missing;           ///< why there is none; empty where there is
};

/// Runs cells, up to `at_once` side by side, each in a process of its own, with their files in a
/// folder (results among them). Results are in the order of the cells; what went wrong in one is
/// its failure, and so is a stop. `done` hears of each cell that is; where `stopped` says so, what
/// runs ends and no more is started.
std::vector<SimulationResult> run_cells(const Simulator&, const std::filesystem::path& folder,
                                        const std::vector<SimulationJob>&, int at_once,
                                        const std::function<void()>& done,
                                        const std::function<bool()>& stopped);

}  // namespace cputrain::simulation
