#include "backends/mpi/mpi_communicator.h"
#include "core/error.h"

namespace cputrain::mpi {

bool mpi_available() { return false; }

std::string mpi_library_version() { return "no MPI"; }

void remove_leftovers_of_dead_jobs() {}

std::unique_ptr<comm::Communicator> make_mpi_communicator(const HoldSignals&, std::optional<int>,
                                                          const StartLimit&,
                                                          const comm::AddArrays&) {
  fail(ExitCode::usage,
       "this program was built without MPI (several processes cannot train together); build it "
       "with -DCPUTRAIN_MPI=ON, or start it without mpirun");
}

}  // namespace cputrain::mpi
