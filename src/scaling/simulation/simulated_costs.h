#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "scaling/simulation/cost_table.h"
#include "training/request/choose_training.h"
#include "training/session/services.h"

namespace cputrain::simulation {

/// What `simulate` was asked: the grid, and where and with what costs it is.
struct SimulationRequest {
  std::vector<int> cpus, threads;
  std::vector<std::size_t> batches, batches_per_rank;
  std::string platform, costs;
  std::optional<double> clock_ghz, memory_gb, memory_gbs, network_gbps;
  std::optional<int> measure_seconds;
};

/// The file in the cache that keeps costs: of this CPU, program, network with its kernels, and the
/// images they were measured with, since zeros in them decide how long kernels take.
std::string costs_file_name(const training::TrainingFlags&, const placement::Machine&,
                            const std::string& network);

/// The costs of the model that `simulate` computes with: those of --costs, else those kept in the
/// cache (costs_file_name), else measured now and kept. --measure-seconds and
/// `here` (what is simulated is this machine) have them measured each time, `here` for longer.
/// Error(usage) where --costs are of another network.
CostTable costs_of(const SimulationRequest&, const training::Services&,
                   const training::TrainingSpec&, const model::Graph&, bool here);

}  // namespace cputrain::simulation
