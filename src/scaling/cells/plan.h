#pragma once

#include <cmath>

#include "scaling/cells/cells.h"
#include "system/placement/launch_words.h"
#include "training/request/flag_grammars.h"

/// From the figures of a grid to its cells, and from a cell to the training that measures it and to
/// how its ranks are started.
namespace cputrain::cells {

/// The grid as asked for. Every list but those of GPUs and of one of the two of batches has an
/// entry; of CPUs, where a column is of them.
struct SweepGrid {
  std::vector<int> cpus;
  std::vector<int> gpus{};           ///< columns of devices; none: `cpus` counts those, too
  std::vector<int> threads{1};       ///< a rank's: CPUs are divided by it; devices are a rank each
  std::vector<std::size_t> batches;  ///< global
  std::vector<std::size_t> batches_per_rank;  ///< the global batch grows with the ranks
  std::vector<std::string> backends;
  /// Values of the listed flags that were given (axes.h), by the flag's name.
  std::map<std::string, std::vector<std::string>> listed{};

  /// What the columns of a backend have.
  const std::vector<int>& counts_of(const std::string& backend) const {
    return training::is_device(backend) && !gpus.empty() ? gpus : cpus;
  }
};

/// Calls see(flag, list) for every list of a grid, those that are empty included.
template <class Grid, class See>
void for_each_list(Grid& grid, const See& see) {
  see("np", grid.cpus);
  see("gpus", grid.gpus);
  see("threads", grid.threads);
  see("batch", grid.batches);
  see("batch-per-rank", grid.batches_per_rank);
  see("backend", grid.backends);
  for (auto& [flag, values] : grid.listed) see(flag.c_str(), values);
}

/// first, 2 first, 4 first, ... and `last` at the end; `last` alone where that is no larger.
std::vector<int> doubled(int first, int last);

/// Every combination of the listed flags' values; one without any where none was given.
std::vector<FlagTexts> combinations_of(const SweepGrid&);

/// How many cells_of() would make.
double count_cells(const SweepGrid&);

/// What says which they are, without figures: backends outermost, then listed flags by name, CPUs,
/// threads, batches.
std::vector<Cell> cells_of(const SweepGrid&);
/// Combinations that make no cell, with the reason.
std::vector<std::string> left_out_of(const SweepGrid&);

/// "np2-t1-b256-cpu" (ranks, threads of each, global batch), "np2-t1-w128-cpu" where 128 is the
/// batch of each rank; "np2-t1-b256-cpu-allreduce=ring" with a value that is not the usual one.
std::string cell_name(const Cell&);

/// "2 ranks x 1 thread, batch 256, cpu, --allreduce ring"; "2 GPUs, batch 256, cuda".
std::string cell_text(const Cell&);

/// An epoch of the whole training set.
struct EpochSize {
  std::size_t images = 0;
  bool drop_last = false;  ///< what fills no whole step is left out

  /// Images of most steps: the batch, or all there are.
  std::size_t images_of_step(std::size_t batch) const { return std::min(batch, images); }
  /// With a fraction for the short last step, which takes about that part of the time.
  double steps(std::size_t batch) const {
    const double steps = static_cast<double>(images) / static_cast<double>(images_of_step(batch));
    return drop_last ? std::floor(steps) : steps;
  }
  /// Images of all these steps.
  double images_in(std::size_t batch) const {
    return steps(batch) * static_cast<double>(images_of_step(batch));
  }
};

/// Steps of a training that measures a cell.
struct StepPlan {
  int warm_up = 0;   ///< until convolutions have found their algorithms, at the most; not counted
  int measured = 0;  ///< after them: the training goes on until it has made so many
  std::size_t images = 0;  ///< training images needed for all of them
};

/// `asked`: steps to be measured; else 5, or up to 25 that hold 2,048 images.
StepPlan steps_for(const Cell&, const EpochSize&, std::optional<int> asked);

/// A backend, and what it can compute with here.
struct BackendHere {
  std::string name;
  std::vector<std::string> precisions{};  ///< that --precision may ask it for
  std::optional<std::size_t> devices{};   ///< here; nothing where it computes on the CPUs
  std::string why_none{};                 ///< where there are no devices
};

/// How the ranks of cells are started here.
struct Launching {
  std::string words;           ///< --launcher; empty: mpirun as this machine needs it
  placement::LaunchHost host;  ///< CPUs that may be used
  int team_limit = 0;          ///< threads of a rank: placement::Machine
  std::string team_limited_by{};
  bool mpi = false;  ///< this build has MPI, and there is an mpirun
  bool open_mpi = false;
  bool as_root = false;
  bool oversubscribe = false;
  bool cluster = false;  ///< a batch system has given several hosts, of which this is one
  std::vector<BackendHere> backends{};  ///< those of this build
};

/// Words before the program that start a cell's ranks; none for a single process without MPI.
std::vector<std::string> launch_words(const Launching&, const Cell&);

/// Why a cell cannot be measured, in words; empty where it can.
std::string why_not(const Launching&, const Cell&);

}  // namespace cputrain::cells
