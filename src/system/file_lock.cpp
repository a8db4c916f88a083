#include "system/file_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace cputrain::system {
namespace {

/// Of the whole file. Locks of an open file description outlive a close() of another descriptor of
/// the same file in this process, which classic POSIX locks do not.
struct flock whole(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

int try_lock(int descriptor, FileLock::Kind kind) {
  struct flock lock = whole(kind == FileLock::Kind::exclusive ? F_WRLCK : F_RDLCK);
  return ::fcntl(descriptor, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

bool is_taken(int lock_error) { return lock_error == EAGAIN || lock_error == EACCES; }

std::optional<FileLock> FileLock::take(const std::filesystem::path& path, Kind kind) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  const int error = descriptor < 0 ? errno : try_lock(descriptor, kind);
  if (error == 0) return FileLock(descriptor);
  if (descriptor >= 0) {
    ::close(descriptor);
    if (is_taken(error)) return std::nullopt;
  }
  fail(ExitCode::output, "cannot lock " + path.string() + ": " + std::strerror(error) +
                             " (another program might write the same files); name another --out");
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
    : descriptor_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
  std::error_code ignored;
  removed_ = descriptor_ < 0 && std::filesystem::is_directory(path.parent_path(), ignored);
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
