#include "system/file_lock.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/text.h"
#include "system/files.h"

namespace cputrain::system {
namespace {

/// A lock of the whole file. Locks of an open file description outlive a close() of another
/// descriptor of the same file in this process, which classic POSIX locks do not.
struct flock whole(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

std::string user_text(uid_t user) {
  const passwd* known = ::getpwuid(user);
  const std::string number = "number " + std::to_string(user);
  return known ? "user " + printable(known->pw_name) + " (" + number + ")" : "user " + number;
}

[[noreturn]] void refuse(const std::filesystem::path& path, std::string why) {
  std::string owner, remedy = "have the owner let you write the lock's file (chmod g+w)";
  struct stat about {};
  if (::lstat(path.c_str(), &about) == 0) {
    owner = ", which belongs to " + user_text(about.st_uid);
    if (!S_ISREG(about.st_mode)) {
      why = S_ISLNK(about.st_mode) ? "it is a link" : "it is no regular file";
      remedy = "remove it where no program needs it";
    }
  }
  fail(ExitCode::usage, "cannot lock " + path.string() + owner + ": " + why +
                            " (without the lock two programs might write into this folder at "
                            "once); name another folder, or " +
                            remedy);
}

/// With NFS the lack of a lock service is the error that elsewhere means too many locks.
bool has_no_locks(int descriptor, int error) {
  if (error == EOPNOTSUPP || error == ENOSYS) return true;
  struct statfs about {};
  return error == ENOLCK && ::fstatfs(descriptor, &about) == 0 && about.f_type == NFS_SUPER_MAGIC;
}

/// All that may write the folder may have the lock after us, whatever our umask is. A file with
/// another name beside this one is maybe no lock at all: in a folder for all, any user can link it.
void open_to_writers_of(const std::filesystem::path& folder, int descriptor) {
  struct stat file {
  }, around{};
  const auto path = folder.empty() ? std::filesystem::path(".") : folder;
  if (::fstat(descriptor, &file) != 0 || ::stat(path.c_str(), &around) != 0) return;
  if (file.st_uid != ::geteuid() || file.st_nlink != 1) return;
  mode_t wanted = file.st_mode & 0777;
  if (around.st_mode & S_IWOTH) wanted |= S_IROTH | S_IWOTH;
  if (around.st_mode & S_IWGRP) {
    const bool shared = file.st_gid == around.st_gid ||
                        ::fchown(descriptor, static_cast<uid_t>(-1), around.st_gid) == 0;
    if (shared) wanted |= S_IRGRP | S_IWGRP;
  }
  // Where the file system refuses, other users get an error that names the file's owner.
  if (wanted != (file.st_mode & 0777)) static_cast<void>(::fchmod(descriptor, wanted) == 0);
}

/// Not with O_CREAT alone: the system may refuse that of a file of others in a folder for all.
int open_lock_file(const std::filesystem::path& path) {
  constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  for (;;) {
    int descriptor = ::open(path.c_str(), kFlags);
    if (descriptor >= 0) return descriptor;
    if (errno == EACCES || errno == EPERM || errno == ELOOP || errno == EISDIR) {
      refuse(path, std::strerror(errno));
    }
    if (errno != ENOENT) cannot_write(path, errno);
    descriptor = ::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0644);
    if (descriptor >= 0) return descriptor;
    if (errno != EEXIST) cannot_write(path, errno);
  }
}

}  // namespace

int try_lock(int descriptor, FileLock::Kind kind) {
  struct flock lock = whole(kind == FileLock::Kind::exclusive ? F_WRLCK : F_RDLCK);
  return ::fcntl(descriptor, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

bool is_taken(int lock_error) { return lock_error == EAGAIN || lock_error == EACCES; }

std::optional<FileLock> FileLock::take(const std::filesystem::path& path, Kind kind) {
  FileLock lock(open_lock_file(path));
  struct stat about {};
  if (::fstat(lock.descriptor_, &about) == 0 && !S_ISREG(about.st_mode)) {
    refuse(path, "it is no regular file");
  }
  open_to_writers_of(path.parent_path(), lock.descriptor_);
  const int error = try_lock(lock.descriptor_, kind);
  if (error == 0) return lock;
  if (has_no_locks(lock.descriptor_, error)) {
    throw NoLocksHere(ExitCode::output,
                      "cannot lock " + path.string() + ": " + std::strerror(error) +
                          " (another program might write the same files); name another --out");
  }
  if (is_taken(error)) return std::nullopt;
  refuse(path, std::strerror(error));
}

FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

LockProbe::LockProbe(const std::filesystem::path& path)
    : descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)) {
  const bool missing = descriptor_ < 0 && errno == ENOENT;
  std::error_code ignored;
  removed_ = missing && std::filesystem::is_directory(path.parent_path(), ignored);
}

LockProbe::~LockProbe() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool LockProbe::held() const {
  if (removed_) return false;
  struct flock lock = whole(F_WRLCK);
  if (descriptor_ < 0 || ::fcntl(descriptor_, F_OFD_GETLK, &lock) != 0) return true;
  return lock.l_type != F_UNLCK;
}

}  // namespace cputrain::system
