#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace cputrain::placement {

/// What started this process, as which of how many, by the environment: before (and without)
/// MPI_Init.
struct Launcher {
  enum class Kind { none, open_mpi, pmi, pmix, slurm };
  Kind kind = Kind::none;
  int rank = 0;
  int size = 1;            ///< at least so many, where it is not known
  bool size_known = true;  ///< not with PMIx without Slurm
  int local_size = 1;      ///< on this machine where that is known, else all
  int world = 1;  ///< torchrun's and its kin's (WORLD_SIZE beside RANK), which know nothing of MPI

  /// Started as one rank of a job by something that an MPI may understand.
  bool present() const { return kind == Kind::open_mpi || kind == Kind::pmi || kind == Kind::pmix; }
};

/// Reads the variables of Open MPI (OMPI_COMM_WORLD_*), else of PMI (PMI_*: the mpiexec of MPICH
/// and Intel MPI, srun --mpi=pmi2), else of PMIx (PMIX_RANK: srun --mpi=pmix). Of Slurm
/// SLURM_STEP_NUM_TASKS alone counts, which srun gives to what it starts: a batch script and
/// everything in it has the others, too. `variable` gives nullptr where one is not set.
Launcher read_launcher(const std::function<const char*(const char* name)>& variable);
Launcher launcher_environment();

/// Error(disagree) where more processes were started than the `ranks` that MPI has: each of them
/// would train alone. `mpi` is the library with its version, nothing in a build without. Ranks
/// other than 0 print little, since they all meet the same, unless rank 0 cannot know of them.
void check_launch(const Launcher&, int ranks, const std::optional<std::string>& mpi);

/// For a single process that a launcher without MPI started as one of several, or whose launcher
/// may have started more than are known; else empty.
std::string launch_warning(const Launcher&, int ranks);

/// A process that is not mistaken for a later one with the same number.
struct ProcessIdentity {
  pid_t id = 0;
  std::uint64_t start = 0;  ///< clock ticks since the machine started

  bool operator==(const ProcessIdentity&) const = default;
};

/// Nothing where there is no such process, or `proc` does not show it.
std::optional<ProcessIdentity> identity_of(pid_t, const std::filesystem::path& proc = "/proc");

/// Whether that process has ended; a zombie has. False where it cannot be found out.
bool is_gone(const ProcessIdentity&, const std::filesystem::path& proc = "/proc");

/// The launcher of a process that was started as a rank: the nearest ancestor of `process` with a
/// launcher's name (mpirun, orted, hydra_pmi_proxy, slurmstepd and their kin), else its parent.
/// Nothing where that is the first process of the machine or container, which takes in orphans, or
/// where `proc` does not show it.
std::optional<ProcessIdentity> find_launcher(pid_t process,
                                             const std::filesystem::path& proc = "/proc");

/// Asks, for system::SignalWatch::end_when, whether the launcher of this process has ended since
/// now. Empty where none is found. Some microseconds a call.
std::function<bool()> launcher_gone();

}  // namespace cputrain::placement
