#pragma once

#include <vector>

namespace cputrain::topology {

/// Hardware threads that the OpenMP runtime spreads its threads over, ascending; empty where it
/// does not bind threads or the program has none.
///
/// With OMP_PROC_BIND, libgomp binds the main thread to its first place before main() starts, so
/// that the thread's own mask no longer shows what this process was given; the places do.
std::vector<int> openmp_cpus();

}  // namespace cputrain::topology
