#include "system/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "system/temporary.h"

namespace cputrain::system {

void cannot_write(const std::filesystem::path& path, int error) {
  const char* remedy = error == EFBIG    ? "raise the limit of a file's size (ulimit -f)"
                       : error == EMFILE ? "raise the limit of open files (ulimit -n)"
                                         : "free space or name another place";
  fail(ExitCode::output, "cannot write " + path.string() + ": " + std::strerror(error) +
                             " (results would be lost); " + remedy);
}

namespace {

void write_all(int descriptor, std::span<const std::byte> bytes,
               const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot_write(path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

/// Closes a descriptor at the end of its scope.
struct Closing {
  int descriptor;
  ~Closing() { ::close(descriptor); }
};

/// Some file systems have nothing to put on disk, which is no error.
void sync(int descriptor, const std::filesystem::path& path) {
  if (::fsync(descriptor) != 0 && errno != EINVAL) cannot_write(path, errno);
}

}  // namespace

void remove_abandoned(const std::filesystem::path& path) {
  const std::string file = path.filename().string();
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::error_code error;  // a folder that cannot be looked into shows when it is written
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!is_temporary_of(entry->path().filename().string(), file)) continue;
    const AbandonedFile found(entry->path());
    if (found.is_abandoned()) ::unlink(entry->path().c_str());
  }
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  remove_abandoned(path_);
  temporary_ = path_;
  temporary_ += temporary_suffix();
  descriptor_ = open_locked(temporary_);
  if (descriptor_ < 0) cannot_write(path_, errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) { write_all(descriptor_, bytes, path_); }

void AtomicFile::write_at(std::size_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot_write(path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::size_t>(written);
  }
}

void AtomicFile::close(Durability durability) {
  if (durability == Durability::disk) sync(descriptor_, path_);
  // Until the file has its name nobody may take it for abandoned.
  const int lock = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
  if (lock < 0) cannot_write(path_, errno);
  // Network file systems may tell of a full disk only here.
  if (::close(std::exchange(descriptor_, lock)) != 0) cannot_write(path_, errno);
}

void AtomicFile::commit(Durability durability) {
  close(durability);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) cannot_write(path_, errno);
  ::close(std::exchange(descriptor_, -1));
  if (durability == Durability::disk) sync_folder(path_.parent_path());
}

bool AtomicFile::commit_new() {
  close(Durability::disk);
  int error = ::link(temporary_.c_str(), path_.c_str()) == 0 ? 0 : errno;
  // Some file systems have no links; the names of two that come at once then follow each other.
  if (error == EPERM || error == EOPNOTSUPP) {
    error = ::access(path_.c_str(), F_OK) == 0                 ? EEXIST
            : ::rename(temporary_.c_str(), path_.c_str()) == 0 ? 0
                                                               : errno;
  }
  ::unlink(temporary_.c_str());
  ::close(std::exchange(descriptor_, -1));
  if (error != 0 && error != EEXIST) cannot_write(path_, error);
  sync_folder(path_.parent_path());
  return error == 0;
}

bool create_file(const std::filesystem::path& path, std::string_view text) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return false;
  AtomicFile file(path);
  file.write(text);
  return file.commit_new();
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);  // a pipe or a device
    if (descriptor < 0) cannot_write(path, errno);
    const Closing closing{descriptor};
    return write_all(descriptor, std::as_bytes(std::span(text)), path);
  }
  const auto target = std::filesystem::weakly_canonical(path, ignored);  // where a link leads
  AtomicFile file(target.empty() ? path : target);
  file.write(text);
  file.commit();
}

GrowingFile::GrowingFile(std::filesystem::path path, Begin begin) : path_(std::move(path)) {
  const int anew = begin == Begin::anew ? O_TRUNC : 0;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | anew, 0644);
  if (descriptor_ < 0) cannot_write(path_, errno);
}

GrowingFile::~GrowingFile() { ::close(descriptor_); }

void GrowingFile::append(std::string_view bytes) {
  const off_t whole = ::lseek(descriptor_, 0, SEEK_END);
  try {
    write_all(descriptor_, std::as_bytes(std::span(bytes)), path_);
  } catch (const Error&) {
    // Half a piece would make the file unreadable; if even this fails, the error says enough.
    static_cast<void>(::ftruncate(descriptor_, whole) == 0);
    throw;
  }
}

void sync_file(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) cannot_write(path, errno);
  const Closing closing{descriptor};
  sync(descriptor, path);
}

void sync_folder(const std::filesystem::path& folder) {
  const auto path = folder.empty() ? std::filesystem::path(".") : folder;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0 && errno == EACCES) return;  // may be written and not read
  if (descriptor < 0) cannot_write(path, errno);
  const Closing closing{descriptor};
  sync(descriptor, path);
}

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) cannot_write(path, error.value());
}

}  // namespace cputrain::system
