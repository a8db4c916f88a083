#include "system/file_lock.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/error.h"
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
  std::string owner, remedy;
  struct stat about {};
  if (::lstat(path.c_str(), &about) == 0) {
    owner = ", which belongs to " + user_text(about.st_uid);
    if (about.st_uid != ::geteuid()) {
      remedy = "have the owner let you write the lock's file (chmod g+w)";
    }
    if (!S_ISREG(about.st_mode)) {
      why = S_ISLNK(about.st_mode) ? "it is a link" : "it is no regular file";
      remedy = "remove it where no program needs it";
    }
  }
  fail(ExitCode::usage, "cannot lock " + path.string() + owner + ": " + why +
                            " (without the lock two programs might write into this folder at "
                            "once); name another folder" +
                            (remedy.empty() ? "" : ", or " + remedy));
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
  constexpr int kTries = 1000;  // others may make and remove it
  for (int i = 0;; ++i) {
    int descriptor = ::open(path.c_str(), kFlags);
    if (descriptor >= 0) return descriptor;
    if (errno == EACCES || errno == EPERM || errno == ELOOP || errno == EISDIR) {
      refuse(path, error_text(errno));
    }
    if (errno != ENOENT) cannot_write(path, errno);
    descriptor = ::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0644);
    if (descriptor >= 0) return descriptor;
    if (errno != EEXIST || i == kTries) cannot_write(path, errno);
  }
}

int set_lock(int descriptor, short type) {
  struct flock lock = whole(type);
  while (::fcntl(descriptor, F_OFD_SETLK, &lock) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

int try_lock(int descriptor, FileLock::Kind kind) {
  return set_lock(descriptor, kind == FileLock::Kind::exclusive ? F_WRLCK : F_RDLCK);
}

void close_locked(int descriptor) {
  set_lock(descriptor, F_UNLCK);
  ::close(descriptor);
}

bool is_taken(int lock_error) { return lock_error == EAGAIN || lock_error == EACCES; }

std::optional<FileLock> FileLock::take(const std::filesystem::path& path, Kind kind) {
  Descriptor file(open_lock_file(path));
  struct stat about {};
  if (::fstat(file.number(), &about) == 0 && !S_ISREG(about.st_mode)) {
    refuse(path, "it is no regular file");
  }
  open_to_writers_of(path.parent_path(), file.number());
  const int error = try_lock(file.number(), kind);
  if (error == 0) return FileLock(std::move(file));
  if (is_taken(error)) return std::nullopt;
  if (!is_lacking(error, {ENOLCK})) refuse(path, error_text(error));
  do_without("locks", path, error,
             "a second program in this folder would mix up its files; start no other one there");
  return FileLock(Descriptor());
}

FileLock::~FileLock() {
  if (file_.is_open()) close_locked(file_.release());
}

LockProbe::LockProbe(const std::filesystem::path& path)
    : file_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)) {
  const bool missing = !file_.is_open() && errno == ENOENT;
  removed_ = missing && is_folder(path.parent_path());
}

bool LockProbe::held() const {
  if (removed_) return false;
  struct flock lock = whole(F_WRLCK);
  if (!file_.is_open() || ::fcntl(file_.number(), F_OFD_GETLK, &lock) != 0) return true;
  return lock.l_type != F_UNLCK;
}

}  // namespace cputrain::system
