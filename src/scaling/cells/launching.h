#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scaling/cells/cells.h"
#include "system/placement/launch_line.h"

namespace cputrain::cells {

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
