#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "data/dataset.h"
#include "scaling/simulation/cost_table.h"
#include "system/placement/machine.h"
#include "training/request/choose_training.h"
#include "training/session/services.h"

namespace cputrain::simulation {

/// "4 ranks x 1 thread".
std::string text_of(const Team&);

/// Teams to be measured on a machine: 1, 4, 16, ... ranks of one thread, as many as there are cores
/// and hardware threads, and one rank with a thread on each core.
std::vector<Team> teams_of(int cores, int hardware_threads);

/// What is measured for a cost table, and on what.
struct Calibration {
  const model::Graph& graph;
  const optim::UpdateRule& rule;
  double learning_rate;
  std::uint64_t seed;  ///< for the initial weights of the first training
  const data::ImageSet& images;
  const placement::Machine& machine;
  std::vector<int> sizes;  ///< images at once, ascending
  double seconds;          ///< that the rounds take at least
  int trainings;           ///< whose weights they have; fewer where memory is short
  std::function<std::unique_ptr<compute::Backend>(int threads)> make_backend;
  /// The hardware threads of this rank of a team.
  std::function<std::vector<int>(int rank, int threads)> cpus;
  /// Binds the calling thread to them.
  std::function<void(const std::vector<int>&)> bind;
  std::function<void(const std::string&)> say;
};

/// Times passes of the model by layer and number of images, the update, sums of arrays and the
/// machine's limits, for each team. Rounds go through all sizes and teams, again and again, so that
/// a disturbance of seconds falls on none of them alone, and medians count. The weights are those
/// after 4, 7 or 10 steps of several trainings in turn, and costs are means over them: between
/// trainings, and between their steps, kernels that skip zeros are up to a fifth quicker or slower.
/// Rounds that the host disturbed are measured again (core/statistics/calm_rounds.h), for 60 s at
/// most. A machine's speed may come and go within minutes with nothing stolen, so rounds go on for
/// `seconds` at least; preparations take a minute or two more on two cores. Names of model and
/// network are left to the caller.
CostTable calibrate(const Calibration&);

/// What calibrate() says after so many rounds, of which it wants 12, that took `past` seconds of
/// `least`, when it goes on.
std::string calibration_progress(int rounds, double past, double least);

// Costs that `simulate` computes with.

/// The file in the cache that keeps costs: of this CPU, program, network with its kernels, and the
/// images they were measured with, since zeros in them decide how long kernels take.
std::string costs_file_name(const training::TrainingFlags&, const placement::Machine&,
                            const std::string& network);

/// Whose costs are wanted, and how.
struct CostsRequest {
  std::string file{};            ///< --costs FILE; empty: none
  std::optional<int> seconds{};  ///< --measure-seconds
  bool here = false;             ///< what is simulated is this machine
};

/// The model's costs: of the file, kept in the cache (costs_file_name), or measured now and kept.
/// `seconds` and `here` have them measured each time, `here` for longer. Their origin says where
/// kernels are others than this program's. Error(usage) where a file's are of another network.
CostTable find_costs(const CostsRequest&, const training::Services&, const training::TrainingSpec&,
                     const model::Graph&);

}  // namespace cputrain::simulation
