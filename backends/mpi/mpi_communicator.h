#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "system/placement/launcher.h"

namespace cputrain::mpi {

/// Whether this build can start MPI (-DCPUTRAIN_MPI=ON).
bool mpi_available();

/// "Open MPI 4.1.4", or whatever the library calls itself; "no MPI" in a build without.
std::string mpi_library_version();

/// Removes what killed jobs of this user left on this machine: memory that ranks shared, and their
/// launchers' folders of temporary files. For every start, whether by a launcher or not.
void remove_leftovers_of_dead_jobs();

/// While what it returns lives, no signal ends this process (system/signals.h). May be empty.
using HoldSignals = std::function<std::shared_ptr<void>()>;

/// For how long MPI may wait for ranks that do not come; 0: for ever.
struct StartLimit {
  placement::Launcher launcher{};
  double seconds = 0;
};

/// Starts MPI (MPI_THREAD_MULTIPLE where it can be had) and returns all ranks of MPI_COMM_WORLD.
/// `ranks_a_node` makes several nodes of one machine, for tests. Once a process. Destroying it
/// finalizes MPI; when that happens because of an exception, MPI is left alone, since other ranks
/// would not come to finalize: then call abort, or end the process, which makes mpirun end the
/// others.
///
/// A process that ended inside MPI_Init or MPI_Finalize would leave Open MPI's mpirun, and so the
/// other ranks, waiting for ever: there `hold` keeps signals away.
///
/// Where it does not start within the limit, it prints which ranks are missing and ends the process
/// with ExitCode::unanswered.
///
/// What messages bring is added up by `add`; plainly where it is empty.
///
/// Everything made from the communicator must be destroyed before it. Throws Error(internal) with
/// MPI's own words when a call fails, Error(usage) in a build without MPI.
std::unique_ptr<comm::Communicator> make_mpi_communicator(const HoldSignals& hold = {},
                                                          std::optional<int> ranks_a_node = {},
                                                          const StartLimit& = {},
                                                          const comm::AddArrays& add = {});

}  // namespace cputrain::mpi
