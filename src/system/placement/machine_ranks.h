#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "system/placement/placement.h"

namespace cputrain::placement {

/// Different numbers of a list, ascending.
std::vector<int> distinct(const std::vector<int>&);

/// All ranks of a machine together.
struct MachineRanks {
  /// What a control group gives its ranks.
  struct Group {
    double quota = 0;  ///< CPUs of time; 0: no limit
    double cores = 0;  ///< that they could use without it; one that n ranks may use counts as 1/n
  };

  std::set<int> cpus;                ///< hardware threads that any rank may use
  std::map<int, int> ranks_on_core;  ///< how many ranks may run on each core
  std::map<std::uint64_t, Group> groups;
  double quota = 0;  ///< of all groups; 0: no limit
  int machine_cores = 0, machine_cpus = 0, numa_nodes = 1;
  bool one_core_each = true;
  bool user_binds = false;

  explicit MachineRanks(const std::vector<RankPlace>&);

  int cores() const { return static_cast<int>(ranks_on_core.size()); }
  int hardware_threads() const { return static_cast<int>(cpus.size()); }
  bool quota_binds() const { return quota > 0 && quota < cores(); }
  /// How many threads can compute at once.
  double capacity() const;
  /// Cores that this rank can call its own: one that n ranks may use counts as 1/n.
  int share(const RankPlace&) const;

 private:
  double part_of(const RankPlace&) const;
};

}  // namespace cputrain::placement
