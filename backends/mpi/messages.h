#pragma once

#include <mpi.h>

#include <memory>

#include "comm/allreduce.h"
#include "comm/point_to_point.h"

namespace cputrain::mpi {

/// A communicator of our own, so that its messages meet no others and another thread may use it.
class OwnComm final {
 public:
  /// The ranks of MPI_COMM_WORLD that name the same color, in the same order. Collective.
  explicit OwnComm(int color);
  ~OwnComm();
  OwnComm(const OwnComm&) = delete;
  OwnComm& operator=(const OwnComm&) = delete;
  MPI_Comm get() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// MPI_Sendrecv between all ranks. What it brings is added up by `add`; plainly where it is empty.
std::unique_ptr<comm::PointToPoint> make_mpi_point_to_point(const comm::AddArrays& add);

/// MPI_Allreduce over the ranks that name the same group. All ranks get the same bits, though MPI
/// only recommends it: Open MPI's and MPICH's algorithms (ring, recursive doubling, Rabenseifner,
/// reduce and broadcast) form each sum either once, or on both partners of a pair as a + b and
/// b + a.
std::unique_ptr<comm::Allreduce> make_mpi_allreduce(int group);

}  // namespace cputrain::mpi
