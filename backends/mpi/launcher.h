#pragma once

#include <functional>
#include <string>

namespace cputrain {

/// What the environment says about who started this process, before (and without) MPI_Init.
struct Launcher {
  int rank = 0;
  int size = 1;
  bool present = false;  ///< mpirun, mpiexec or srun started this process as one of a job's ranks
  std::string warning;   ///< set where several tasks were started that cannot find each other
};

/// Reads the variables of Open MPI (OMPI_COMM_WORLD_*), PMI (PMI_*: MPICH, Intel MPI, srun
/// --mpi=pmi2) and PMIx (PMIX_RANK: srun --mpi=pmix). Slurm's own variables give the size only
/// beside one of these, because a batch script and everything in it has them, too.
Launcher launcher_environment();

/// The same for any source of variables (nullptr where one is not set).
Launcher read_launcher(const std::function<const char*(const char* name)>& variable);

}  // namespace cputrain
