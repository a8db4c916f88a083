#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "system/placement/placement.h"

namespace cputrain::placement {

/// Words to be typed before the program to start as many `ranks` as `process` is one of: those of
/// the mpirun above it, where that is on this host and names the program; else "srun -n 4" below
/// Slurm's srun, and "mpirun -np 4". None for one rank. Variables are there without their values.
std::vector<std::string> launch_words(int ranks, pid_t process,
                                      const std::filesystem::path& proc = "/proc");

/// The options with which Open MPI starts ranks well on one machine. It counts cores as slots by
/// default, not hardware threads, and binds one or two ranks to one core each.
struct LaunchHost {
  int cores = 1;             ///< that may be used
  int hardware_threads = 1;  ///< that may be used
  int numa_nodes = 1;
  double cpu_quota = 0;
};

/// "-np 4 --map-by ppr:2:numa:PE=12 --bind-to core": `ranks` of equal size, as many cores each as
/// there are, inside NUMA nodes where they fit. More ranks than hardware threads are not bound.
std::string mpirun_options(const LaunchHost&, int ranks);

/// The same for ranks that get `threads` cores each and no more, so that others stay idle.
std::string mpirun_options(const LaunchHost&, int ranks, int threads);

struct LaunchLine {
  std::string line;     ///< to be typed
  std::string purpose;  ///< "one rank a physical core"
};

/// The first is what we would type on this machine; the others are worth comparing with it.
/// `as_root`: mpirun wants an option for it; without `mpi` there is one process.
std::vector<LaunchLine> launch_lines(const LaunchHost&, bool as_root, bool mpi);

}  // namespace cputrain::placement
