#include "backends/mpi/job_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "backends/mpi/launcher_session.h"
#include "backends/mpi/own_folder.h"
#include "core/hash.h"
#include "system/file_lock.h"

namespace cputrain::mpi {
namespace {

namespace fs = std::filesystem;
using system::FileLock;

constexpr const char* kLock = "lock";

/// Closes a descriptor at the end of its scope, unless it is released.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

/// How names of our folders begin: with the user's number, since all users share /dev/shm.
std::string name_prefix() { return "cputrain-" + std::to_string(::geteuid()) + "-"; }

std::string folder_name(const LaunchedJob& job) {
  std::ostringstream name;
  name << name_prefix() << std::hex << Fnv1a().add(job.id).value();
  return name.str();
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

/// The locked file's text, for those that find the job dead: the launcher's number and start, and
/// its session folder, a line each. All ranks write the same.
std::string text_of(const LaunchedJob& job) {
  const auto launcher = job.launcher.value_or(placement::ProcessIdentity{});
  return std::to_string(launcher.id) + ' ' + std::to_string(launcher.start) + '\n' + job.session +
         '\n';
}

/// Without a session where the text is not whole.
LaunchedJob read_text(int lock) {
  std::string text(8192, '\0');
  const ssize_t size = ::pread(lock, text.data(), text.size(), 0);
  text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  std::istringstream lines(text);
  placement::ProcessIdentity launcher;
  std::string session;
  lines >> launcher.id >> launcher.start;
  std::getline(lines, session);  // the rest of the first line
  std::getline(lines, session);
  if (!lines || lines.eof()) return {};
  LaunchedJob job{.id = {}, .session = session, .launcher = {}};
  if (launcher.id > 0) job.launcher = launcher;
  return job;
}

/// Whether a folder has the name that it is given to be removed: ...-HASH-NUMBER.
bool is_being_removed(const fs::path& path) {
  const std::string name = path.filename().string().substr(name_prefix().size());
  const std::size_t hyphen = name.find('-');
  return hyphen != name.npos && number_after("-", name.substr(hyphen)).has_value();
}

/// One that a rank has just begun is empty, as is the rest of one that was removed.
void remove_without_lock(const fs::path& path) {
  std::error_code ignored;
  if (is_being_removed(path)) {
    fs::remove_all(path, ignored);
  } else {
    ::rmdir(path.c_str());
  }
}

/// Removes the folder if no rank holds its lock; `clean_up` is given what the job left word of. A
/// lock that is missing is not made: the folder may be going away just now.
void remove_if_dead(const fs::path& path, const std::function<void(const LaunchedJob&)>& clean_up) {
  const Descriptor folder(open_private(path));
  if (!folder.is_open()) return;
  const Descriptor lock(::openat(folder.number(), kLock, O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!lock.is_open()) {
    if (errno == ENOENT) remove_without_lock(path);
    return;
  }
  if (system::try_lock(lock.number(), FileLock::Kind::exclusive) != 0) return;
  if (!is_still_lock_of(lock.number(), path)) return;
  clean_up(read_text(lock.number()));
  // At once away from its name: a rank that joins meanwhile must not get what is being removed.
  const auto number = static_cast<pid_t>(std::random_device()() >> 1 | 1);
  const fs::path away = path.string() + "-" + std::to_string(number);
  std::error_code error;
  fs::rename(path, away, error);
  // A rank that had the folder open before it moved may still have made a lock in it.
  for (int i = 0; i < 3 && !error && fs::exists(away, error); ++i) {
    std::error_code ignored;
    fs::remove_all(away, ignored);
  }
}

/// Hydra's variables are alike in all jobs. They differ in its process on this machine, which
/// started the ranks here.
std::optional<LaunchedJob> job_of_hydra(const std::function<const char*(const char*)>& variable) {
  if (variable("PMI_RANK") == nullptr || variable("MPI_LOCALRANKID") == nullptr) return {};
  LaunchedJob job{.id = {}, .session = {}, .launcher = placement::find_launcher(::getpid())};
  if (!job.launcher) return {};
  std::string name;
  std::ifstream file(fmt::format("/proc/{}/comm", job.launcher->id));
  if (!std::getline(file, name) || name != "hydra_pmi_proxy") return {};
  job.id = fmt::format("hydra {} {}", job.launcher->id, job.launcher->start);
  return job;
}

}  // namespace

std::optional<LaunchedJob> launched_job(const std::function<const char*(const char*)>& variable) {
  if (auto job = job_of_hydra(variable)) return job;
  const auto text = [&](const char* name) {
    const char* value = variable(name);
    return std::string(value ? value : "");
  };
  LaunchedJob job{
      .id = text("PMIX_NAMESPACE"), .session = text("PMIX_SERVER_TMPDIR"), .launcher = {}};
  if (job.id.empty()) return std::nullopt;
  // Numbers of jobs come again. Of the last two, the first is random with Open MPI 4; the other has
  // the port of the host's launcher or daemon.
  for (const char* name :
       {"PMIX_SERVER_TMPDIR", "OMPI_MCA_orte_precondition_transports", "PMIX_SERVER_URI2"}) {
    job.id += '\n' + text(name);
  }
  job.launcher = placement::find_launcher(::getpid());
  return job;
}

void remove_dead_jobs(const fs::path& base, const LaunchedJob& mine) {
  const std::string prefix = name_prefix();
  std::error_code error;
  for (fs::directory_iterator entry(base, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(prefix)) continue;
    remove_if_dead(entry->path(), [&](const LaunchedJob& dead) {
      if (dead.session != mine.session) remove_session(dead.session, dead.launcher);
    });
  }
}

std::optional<JobFolder> JobFolder::join(const fs::path& base, const LaunchedJob& job) {
  constexpr int kTries = 1000;  // a second: as long as others take to remove a folder
  const fs::path path = base / folder_name(job);
  for (int i = 0; i < kTries; ++i) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return std::nullopt;
    Descriptor lock(open_lock(path));
    if (!lock.is_open() && errno != ENOENT) return std::nullopt;
    const int error = lock.is_open() ? system::try_lock(lock.number(), FileLock::Kind::shared) : 0;
    if (error != 0 && !system::is_taken(error)) return std::nullopt;
    if (lock.is_open() && error == 0 && is_still_lock_of(lock.number(), path)) {
      const std::string text = text_of(job);
      if (::pwrite(lock.number(), text.data(), text.size(), 0) < 0) return std::nullopt;
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
  remove_if_dead(path_, [](const LaunchedJob&) {});
}

}  // namespace cputrain::mpi
