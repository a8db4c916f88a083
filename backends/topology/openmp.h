#pragma once

#include <string>
#include <vector>

/// What the environment sets for the OpenMP runtime of this program.
namespace cputrain::topology {

/// Hardware threads that the OpenMP runtime spreads its threads over, ascending; empty where it
/// does not bind threads or the program has none.
///
/// With OMP_PROC_BIND, libgomp binds the main thread to its first place before main() starts, so
/// that the thread's own mask no longer shows what this process was given; the places do.
std::vector<int> openmp_cpus();

/// The variables by which it does so, "OMP_PROC_BIND,OMP_PLACES"; empty where it does not.
std::string openmp_binds();

/// How many threads may compute together. A library that plans with more waits for ever for those
/// that it is not given.
struct TeamLimit {
  int threads = 0;    ///< 0: no limit
  std::string named;  ///< the variable of the environment that sets it, else "OpenMP"
};

TeamLimit openmp_team_limit();

}  // namespace cputrain::topology
