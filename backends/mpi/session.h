#pragma once

#include <optional>

#include "backends/mpi/job_folder.h"
#include "backends/mpi/mpi_communicator.h"

namespace cputrain::mpi {

/// MPI itself, from MPI_Init to MPI_Finalize. Under SMPI, where ranks have no threads, it is
/// backends/sim's.
class MpiSession final {
 public:
  MpiSession(HoldSignals hold, const StartLimit&);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  /// MPI_THREAD_MULTIPLE could be had.
  bool serves_threads() const { return serves_threads_; }

 private:
  HoldSignals hold_;
  std::optional<JobFolder> job_folder_;  ///< longer than MPI, which keeps its shared memory there
  bool serves_threads_ = false;
};

}  // namespace cputrain::mpi
