#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/communicator.h"

namespace cputrain {

/// Whether this build can start MPI (-DCPUTRAIN_MPI=ON).
bool mpi_available();

/// "Open MPI 4.1.4", or whatever the library calls itself; "no MPI" in a build without.
std::string mpi_library_version();

/// Starts MPI (MPI_THREAD_MULTIPLE where it can be had) and returns all ranks of MPI_COMM_WORLD.
/// `ranks_a_node` makes several nodes of one machine, for tests. Once a process. Destroying it
/// finalizes MPI; when that happens because of an exception, MPI is left alone, since other ranks
/// would not come to finalize: then call abort, or end the process, which makes mpirun end the
/// others.
///
/// Everything made from the communicator must be destroyed before it. Throws Error(internal) with
/// MPI's own words when a call fails, Error(usage) in a build without MPI.
std::unique_ptr<Communicator> make_mpi_communicator(std::optional<int> ranks_a_node = {});

}  // namespace cputrain
