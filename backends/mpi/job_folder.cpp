#include "backends/mpi/job_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/casts.h"
#include "core/hash.h"
#include "system/bounded_file.h"
#include "system/file_lock.h"
#include "system/placement/launcher.h"

namespace cputrain::mpi {
namespace {

namespace fs = std::filesystem;
using system::Descriptor, system::FileLock;

constexpr const char* kLock = "lock";
/// What stands in the locked file: a folder without it is not of this program.
constexpr std::string_view kMark = "a job of cputrain\n";

/// How names of our folders begin: with the user's number, since all users share /dev/shm.
std::string name_prefix() { return "cputrain-" + std::to_string(::geteuid()) + "-"; }

std::string folder_name(std::string_view job) {
  return fmt::format("{}{:x}", name_prefix(), Fnv1a().add(job).value());
}

bool may_be_of_job(std::string_view name) {
  const std::string prefix = name_prefix();
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         name.find_first_not_of("0123456789abcdef", prefix.size()) == name.npos;
}

/// A folder, no link to one, that is this user's.
bool is_own_folder(const struct stat& status) {
  return S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
}

/// Opens the folder if no other user may write there, so that what it holds is this user's, too.
int open_private(const fs::path& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!folder.is_open() || ::fstat(folder.number(), &status) != 0) return -1;
  if (is_own_folder(status) && (status.st_mode & 077) == 0) return folder.release();
  errno = EPERM;
  return -1;
}

/// The file to lock, made where it is missing; -1 with errno.
int open_lock(const fs::path& path) {
  const Descriptor folder(open_private(path));
  if (!folder.is_open()) return -1;
  return ::openat(folder.number(), kLock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/// Whether the folder of that name still is the one whose file was opened: meanwhile another
/// process may have removed it, and a third one made it again.
bool is_still_lock_of(int lock, const fs::path& path) {
  struct stat opened {
  }, named{};
  return ::fstat(lock, &opened) == 0 && ::lstat((path / kLock).c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/// A rank that was killed as it began may have left the file empty, with nothing beside it.
bool is_of_this_program(int lock, const std::vector<std::string>& entries) {
  std::array<char, 64> text{};
  const ssize_t size = ::pread(lock, text.data(), text.size(), 0);
  if (size == 0) return entries.size() == 1;
  return size > 0 && std::string_view(text.data(), to_size(size)) == kMark;
}

/// Removes the folder if no rank holds its lock. A lock that is missing is not made: the folder may
/// be going away just now.
void remove_if_dead(const fs::path& path) {
  const Descriptor folder(open_private(path));
  if (!folder.is_open()) return;
  const Descriptor lock(::openat(folder.number(), kLock, O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!lock.is_open()) {
    // One that a rank has just begun is empty, as is the rest of one that was removed.
    if (errno == ENOENT) ::rmdir(path.c_str());
    return;
  }
  if (system::try_lock(lock.number(), FileLock::Kind::exclusive) != 0) return;
  if (!is_still_lock_of(lock.number(), path)) return;
  const std::vector<std::string> entries = system::names_in(path);
  if (!is_of_this_program(lock.number(), entries)) return;
  // The lock goes last: a rank that joins waits for it, and a removal that is cut short is gone on
  // with.
  std::error_code ignored;
  for (const std::string& name : entries) {
    if (name != kLock) fs::remove_all(path / name, ignored);
  }
  ::unlink((path / kLock).c_str());
  ::rmdir(path.c_str());
}

/// Hydra's variables are alike in all jobs. They differ in its process on this machine, which
/// started the ranks here.
std::optional<std::string> job_of_hydra(const Variable& variable) {
  if (variable("PMI_RANK") == nullptr || variable("MPI_LOCALRANKID") == nullptr) return {};
  const auto launcher = placement::find_launcher(::getpid());
  if (!launcher) return {};
  std::string name;
  std::ifstream file(fmt::format("/proc/{}/comm", launcher->id));
  if (!std::getline(file, name) || name != "hydra_pmi_proxy") return {};
  return fmt::format("hydra {} {}", launcher->id, launcher->start);
}

}  // namespace

std::optional<std::string> launched_job(const Variable& variable) {
  if (auto job = job_of_hydra(variable)) return job;
  if (const char* name = variable("PMIX_NAMESPACE"); !name || !*name) return std::nullopt;
  // Numbers of jobs come again. Of the last two, the first is random with Open MPI 4; the other has
  // the port of the host's launcher or daemon.
  std::string job;
  for (const char* name : {"PMIX_NAMESPACE", "PMIX_SERVER_TMPDIR",
                           "OMPI_MCA_orte_precondition_transports", "PMIX_SERVER_URI2"}) {
    const char* value = variable(name);
    job.append(value ? value : "").push_back('\n');
  }
  return job;
}

void remove_dead_jobs(const fs::path& base) {
  for (const std::string& name : system::names_in(base)) {
    if (may_be_of_job(name)) remove_if_dead(base / name);
  }
}

std::optional<JobFolder> JobFolder::join(const fs::path& base, std::string_view job) {
  constexpr int kTries = 1000;  // a second: as long as others take to remove a folder
  const fs::path path = base / folder_name(job);
  for (int i = 0; i < kTries; ++i) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return std::nullopt;
    Descriptor lock(open_lock(path));
    if (!lock.is_open() && errno != ENOENT) return std::nullopt;
    const int error = lock.is_open() ? system::try_lock(lock.number(), FileLock::Kind::shared) : 0;
    if (error != 0 && !system::is_taken(error)) return std::nullopt;
    if (lock.is_open() && error == 0 && is_still_lock_of(lock.number(), path)) {
      // Where /dev/shm is full the other ranks' mark will do, if one of them found room for it.
      static_cast<void>(::pwrite(lock.number(), kMark.data(), kMark.size(), 0) < 0);
      return JobFolder(path, lock.release());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // another process is removing it
  }
  return std::nullopt;
}

JobFolder::JobFolder(JobFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

JobFolder::~JobFolder() {
  if (lock_ < 0) return;
  ::close(lock_);
  // If several ranks leave at the same time, one finds the lock free.
  remove_if_dead(path_);
}

}  // namespace cputrain::mpi
