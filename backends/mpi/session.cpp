#include "backends/mpi/session.h"

#include <cstdlib>
#include <utility>

#include "backends/mpi/check.h"
#include "backends/mpi/giving_way.h"
#include "backends/mpi/start_guard.h"
#include "system/scratch/scratch_file.h"

namespace cputrain::mpi {

namespace {

/// MPI keeps memory that ranks share in files, 4 MiB and more a rank, and ends the process, or
/// waits for ever, where they may not be as long. Before MPI_Init an error can still be printed.
void require_long_files() {
  constexpr std::uint64_t kLeast = std::uint64_t{32} << 20;
  if (system::longest_file() >= kLeast) return;
  fail(ExitCode::usage, "'ulimit -f' allows files of " +
                            std::to_string(system::longest_file() >> 10) +
                            " KiB (MPI keeps memory that ranks share in files of 32 MiB and less); "
                            "raise the limit, or train as one process");
}

const char* variable(const char* name) { return std::getenv(name); }

/// Joins this job's folder, and has Open MPI put what the ranks of a machine share there. MPI reads
/// the variables when it starts; a value that is set already wins.
std::optional<JobFolder> join_job() {
  const auto job = launched_job(variable);
  if (!job) return std::nullopt;
  std::optional<JobFolder> folder = JobFolder::join(kSharedMemory, *job);
  if (!folder) return std::nullopt;
  // Open MPI 4 calls its shared memory vader, Open MPI 5 sm.
  for (const char* name :
       {"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory",
        "OMPI_MCA_osc_sm_backing_directory", "OMPI_MCA_osc_rdma_backing_directory"})
    ::setenv(name, folder->path().c_str(), 0);
  return folder;
}

}  // namespace

void remove_leftovers_of_dead_jobs() { remove_dead_jobs(kSharedMemory); }

MpiSession::MpiSession(HoldSignals hold, const StartLimit& limit)
    : hold_(std::move(hold)), job_folder_(join_job()) {
  require_long_files();
  const StartGuard guard(limit.launcher,
                         job_folder_ ? std::optional(job_folder_->path()) : std::nullopt,
                         limit.seconds);
  const std::shared_ptr<void> held = hold_ ? hold_() : nullptr;
  // Open MPI's waiting ranks spin, and give their core away only where mpirun itself counted more
  // ranks than cores: not in a container with less CPU time than cores, nor beside other jobs,
  // where each barrier then lasts as long as the scheduler's turns. Giving way costs nothing
  // measurable on a free core. A value that is set already wins; other MPIs do not know it.
  ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  sleep_where_cores_are_wanted();
  // Open MPI 5 asks the kernel's routes which addresses reach each other, and finds no pair on
  // hosts that have IPv4 and IPv6 alike: a warning per rank, and between hosts no connection. Its
  // other way compares networks, as Open MPI 4 does.
  ::setenv("OMPI_MCA_reachable", "weighted", 0);
  int provided = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  serves_threads_ = provided >= MPI_THREAD_MULTIPLE;
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  // Behind it no rank is inside MPI_Init any more: only then may one of them end.
  check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
  if (provided < MPI_THREAD_FUNNELED) {
    fail(ExitCode::internal,
         "this MPI cannot serve a program with threads (MPI_THREAD_FUNNELED is missing); use an "
         "MPI built with thread support");
  }
}

MpiSession::~MpiSession() {
  if (!may_clean_up()) return;
  const std::shared_ptr<void> held = hold_ ? hold_() : nullptr;
  MPI_Finalize();
}

}  // namespace cputrain::mpi
