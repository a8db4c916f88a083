#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/node_map.h"
#include "comm/watch/datagrams.h"

namespace cputrain::watch {

/// Which ranks watch each other, and how they reach each other.
struct Team {
  std::uint64_t token = 0;  ///< this job's alone
  int rank = 0;
  std::vector<std::string> hosts{};               ///< by rank
  std::vector<int> nodes{};                       ///< by rank: which share a machine
  std::vector<std::vector<Address>> addresses{};  ///< by rank, as this one may reach it
  std::vector<int> processes{};  ///< by rank: as this one sees it in /proc; 0: not at all

  int size() const { return static_cast<int>(hosts.size()); }
  bool is_on_own_node(int other) const { return nodes[other] == nodes[rank]; }
  /// The observer beside rank 0: the first rank of another machine, else rank 1.
  int deputy() const;
  bool observes() const { return rank == 0 || rank == deputy(); }
  /// Whether it is the first of its machine's ranks that are no observers.
  bool is_first_of_node() const;
};

/// Collective. A rank whose socket is not open has no addresses.
Team gather_team(comm::Communicator&, const comm::NodeMap&, const Datagrams&);

}  // namespace cputrain::watch
