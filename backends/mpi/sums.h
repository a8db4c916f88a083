#pragma once

#include <mpi.h>

#include <vector>

#include "comm/allreduce_exchange.h"

namespace cputrain {

inline MPI_Datatype mpi_type(DType type) { return type == DType::f32 ? MPI_FLOAT : MPI_DOUBLE; }

/// Buckets summed by MPI's own non-blocking allreduce. MPI moves data only while somebody calls
/// it (Open MPI has no progress thread), hence progress().
///
/// All ranks get the same bits, though MPI only recommends it: Open MPI's algorithms (ring,
/// recursive doubling, Rabenseifner, reduce and broadcast) form each sum either once, or on both
/// partners of a pair as a + b and b + a.
class MpiSums final : public TravellingSums {
 public:
  explicit MpiSums(MPI_Comm ranks) : ranks_(ranks) {}
  ~MpiSums() override;
  MpiSums(const MpiSums&) = delete;
  MpiSums& operator=(const MpiSums&) = delete;

  void start(Array numbers) override;
  void progress() override;
  void meet() override;
  void wait() override;

 private:
  MPI_Comm ranks_;
  std::vector<MPI_Request> travelling_;
};

}  // namespace cputrain
