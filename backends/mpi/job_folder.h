#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "system/placement/launcher_gone.h"

/// What Open MPI keeps in /dev/shm while a job runs stays there where the job is killed together
/// with its launcher. So the ranks of a job put it into a folder of their own, in which each of
/// them holds a lock for its life. Locks go with their process, whatever ends it and whichever
/// container it is in; a folder without a lock is a dead job's, and the next job of the same user
/// removes it.
namespace cputrain::mpi {

/// A job of an MPI launcher on this machine, alike on all its ranks here.
struct LaunchedJob {
  std::string id;       ///< differs from that of any other job
  std::string session;  ///< the launcher's folder of this job; empty where it has none
  std::optional<placement::ProcessIdentity> launcher;  ///< when it ends, that folder is of no use
};

/// The job by the environment (PMIX_*), or by the MPICH launcher that started this process; nothing
/// where there is neither. `variable` gives nullptr where one is not set.
std::optional<LaunchedJob> launched_job(const std::function<const char*(const char*)>& variable);

/// Removes folders of dead jobs below `base`, and their launchers' session folders. Keeps silent
/// about what cannot be removed.
void remove_dead_jobs(const std::filesystem::path& base, const LaunchedJob& mine);

/// The folder of this rank's job.
class JobFolder {
 public:
  /// Makes it, or joins the other ranks in it. Nothing where it cannot be had: no such `base`, one
  /// that cannot be written, no locks, or a folder of another user with its name.
  static std::optional<JobFolder> join(const std::filesystem::path& base, const LaunchedJob&);
  /// The last rank that leaves removes it.
  ~JobFolder();
  JobFolder(JobFolder&&) noexcept;
  JobFolder& operator=(JobFolder&&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  JobFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::filesystem::path path_;
  int lock_;  ///< a descriptor of the locked file; -1: moved from
};

}  // namespace cputrain::mpi
