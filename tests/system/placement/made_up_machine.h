#pragma once

#include <numeric>
#include <vector>

#include "system/placement/placement.h"

namespace cputrain::placement {

/// Hardware threads numbered as Linux does: first one of every core, then the second ones.
struct MadeUpMachine {
  int cores;
  int threads_a_core = 1;
  double quota = 0;
  int numa_nodes = 1;

  int hardware_threads() const { return cores * threads_a_core; }
  RankPlace place(int rank, const std::vector<int>& cpus) const {
    RankPlace place{.rank = rank,
                    .host = "a",
                    .kernel = "-",
                    .machine_cores = cores,
                    .machine_cpus = hardware_threads(),
                    .numa_nodes = numa_nodes,
                    .cpu_quota = quota,
                    .binder = {Binder::Kind::open_mpi},
                    .cpus = cpus,
                    .core_of_cpu = {},
                    .numa_of_cpu = {}};
    for (int cpu : cpus) {
      place.core_of_cpu.push_back(cpu % cores);
      place.numa_of_cpu.push_back(cpu % cores * numa_nodes / cores);
    }
    return place;
  }
  std::vector<int> all() const {
    std::vector<int> cpus(hardware_threads());
    std::iota(cpus.begin(), cpus.end(), 0);
    return cpus;
  }
  std::vector<RankPlace> unbound(int ranks) const {
    std::vector<RankPlace> places;
    for (int rank = 0; rank < ranks; ++rank) places.push_back(place(rank, all()));
    return places;
  }
};

inline std::vector<int> run(int from, int to) {
  std::vector<int> numbers(to - from);
  std::iota(numbers.begin(), numbers.end(), from);
  return numbers;
}

constexpr MadeUpMachine kCloud{48, 2};  // a VM of 96 vCPUs

using Threads = std::vector<int>;

inline PlacementRequest threads(int count) { return {count, {}, {}}; }

template <class Plan>
Threads threads_of(const Plan& plan) {
  Threads counts;
  for (const RankPlan& rank : plan.ranks) counts.push_back(rank.threads);
  return counts;
}

}  // namespace cputrain::placement
