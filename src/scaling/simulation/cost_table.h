#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/statistics/statistics.h"

namespace cputrain {
class JsonMembers;
}

/// What a model costs on one kind of core: the measurements that a simulation computes with.
namespace cputrain::simulation {

/// The line with the least relative errors through (images, seconds), of which there is one at
/// least.
Line fit_line(const std::vector<int>& images, const std::vector<double>& seconds);

/// Straight lines between the points, which ascend; beyond them on with the slope of the whole fit.
double interpolate(const std::vector<int>& at, const std::vector<double>& values, double x);

/// So many ranks that work at the same time, with so many threads each.
struct Team {
  int ranks = 1, threads = 1;
};

/// Seconds that a layer takes, each way.
struct LayerSeconds {
  std::string name{};
  double forward = 0, backward = 0;
};

/// Seconds of one layer in one pass, by the table's sizes.
struct LayerCost {
  std::string name;
  std::vector<double> forward, backward;
};

/// Stands in for a layer: what a pass takes besides its layers.
inline constexpr const char* kBetweenLayers = "between layers";

/// All that was measured while so many ranks worked at the same time, with so many threads each.
struct CostsWhenActive {
  int active = 1, threads = 1;
  double fma_gflops = 0;                 ///< one rank's
  double triad_gbs = 0;                  ///< all active ones' together
  double update_seconds_per_number = 0;  ///< the model's update rule, on each rank
  double sum_gbs = 0;                    ///< bytes read and written by each rank that adds arrays
  /// Noise of a pass on one rank: half the width of the middle two thirds, by the median.
  double spread = 0;
  /// How far the machine's speed moved meanwhile: width of the middle half of the rounds, by the
  /// median.
  double drift = 0;
  std::vector<LayerCost> layers;  ///< in the order of the forward pass
};

struct CostTable {
  // what was measured
  std::string cpu, host, build;
  std::string date, commit;  ///< as those of a table of cells
  std::string model;
  int image_size = 0, classes = 0;
  std::string network;  ///< fingerprint of the graph and of what may compute it
  std::string kernels;  ///< the latter alone, with the update rule: "with Winograd, sgd"
  std::string stale;    ///< ", with kernels 9 (this program has 13)", or empty; in no file
  int cores = 1, hardware_threads = 1;
  double memory_bytes = 0;

  std::vector<int> sizes;               ///< images at once, ascending
  std::vector<double> workspace_bytes;  ///< a program's, by size
  /// Those of one thread per rank, ascending, the first with one rank; then one of more threads
  /// where there are several cores.
  std::vector<CostsWhenActive> by_active;

  const CostsWhenActive& alone() const { return by_active.front(); }
  /// With one thread per rank: in proportion between the two measured numbers of ranks around this
  /// one, as the nearest one beyond them.
  CostsWhenActive when(int active) const;
  /// Seconds and rates of a rank with more threads than `one_thread` has (limits of the machine and
  /// the number of ranks stay): each layer has a part that threads share
  /// and one that they do not (Amdahl, 1967), by what was measured with most threads. Where nothing
  /// was, they share all of it.
  CostsWhenActive with_threads(CostsWhenActive one_thread, int threads) const;
  /// How far the machine's speed moved in the worst of the measurements.
  double drift() const;
  /// Costs that moved by more than this while they were measured say little.
  static constexpr double kMostDrift = 0.25;
  bool is_steady() const { return drift() <= kMostDrift; }
  /// "AMD EPYC, measured on 2026-11-25 by commit abc1234, Release", for readers of what it led to.
  std::string origin() const;
};

/// What Error(data) of the files here ends with.
inline constexpr std::string_view kFileRemedy =
    "(a simulation needs it); check the path, correct the file or have it written again";
/// A JSON file that may be hostile. Error(data).
nlohmann::json read_file(const std::filesystem::path&);

void fields_of_costs(JsonMembers&, CostTable&);
nlohmann::ordered_json to_json(const CostTable&);
/// Error(data), naming `where`, for anything odd.
CostTable costs_from_json(const nlohmann::json&, const std::string& where);
CostTable read_costs(const std::filesystem::path&);

}  // namespace cputrain::simulation
