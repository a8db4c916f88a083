// backends/mpi/session.h under SMPI, whose ranks are contexts of one process and start no threads.
#include "backends/mpi/session.h"

#include "backends/mpi/check.h"

namespace cputrain::mpi {

MpiSession::MpiSession(HoldSignals, const StartLimit&) {
  check(MPI_Init(nullptr, nullptr), "MPI_Init");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

MpiSession::~MpiSession() {
  if (may_clean_up()) MPI_Finalize();
}

}  // namespace cputrain::mpi
