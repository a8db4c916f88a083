#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace cputrain::simulation {

/// What `simulate` was asked: the grid, and where and with what costs it is.
struct SimulationRequest {
  std::vector<int> cpus, threads;
  std::vector<std::size_t> batches, batches_per_rank;
  std::string platform, costs;
  std::optional<double> clock_ghz, memory_gb, memory_gbs, network_gbps;
  std::optional<int> measure_seconds;
};

}  // namespace cputrain::simulation
