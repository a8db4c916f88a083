#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// What Open MPI keeps in /dev/shm while a job runs stays there where the job is killed together
/// with its launcher. So the ranks of a job put it into a folder of their own, in which each of
/// them holds a lock for its life. Locks go with their process, whatever ends it and whichever
/// container it is in; a folder without a lock is a dead job's, and the next job of the same user
/// removes it.
namespace cputrain::mpi {

/// Where Linux keeps files in memory.
constexpr const char* kSharedMemory = "/dev/shm";

/// An environment variable's value; nullptr where it is not set.
using Variable = std::function<const char*(const char*)>;

/// What tells the job of an MPI launcher that this process is a rank of from any other on this
/// machine, alike on all its ranks here: by the environment (PMIX_*), or by the MPICH launcher that
/// started this process; nothing where there is neither.
std::optional<std::string> launched_job(const Variable&);

/// Removes folders of dead jobs below `base`. Keeps silent about what cannot be removed, and leaves
/// alone what is not known to be a job's of this program and this user: also the folders that MPI's
/// launchers make for themselves.
void remove_dead_jobs(const std::filesystem::path& base);

/// The folder of this rank's job.
class JobFolder {
 public:
  /// Makes it, or joins the other ranks in it. Nothing where it cannot be had: no such `base`, one
  /// that cannot be written, no locks, or a folder of another user with its name.
  static std::optional<JobFolder> join(const std::filesystem::path& base, std::string_view job);
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
