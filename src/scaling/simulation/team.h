#pragma once

#include <string>
#include <vector>

namespace cputrain::simulation {

/// So many ranks that work at the same time, with so many threads each.
struct Team {
  int ranks = 1, threads = 1;
};

/// "4 ranks x 1 thread".
std::string text_of(const Team&);

/// Teams to be measured on a machine: 1, 4, 16, ... ranks of one thread, as many as there are cores
/// and hardware threads, and one rank with a thread on each core.
std::vector<Team> teams_of(int cores, int hardware_threads);

}  // namespace cputrain::simulation
