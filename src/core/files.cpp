#include "core/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace cputrain {
namespace {

[[noreturn]] void cannot_write(const std::filesystem::path& path, int error) {
  fail(ExitCode::output, "cannot write " + path.string() + ": " + std::strerror(error) +
                             " (results would be lost); free space or name another place");
}

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

/// So that a rename survives a power cut too. Some file systems refuse it, which is no error.
void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  temporary_ = path_;
  // Processes of two containers that share a file system may have one number.
  temporary_ += ".tmp" + std::to_string(::getpid()) + "-" + std::to_string(std::random_device()());
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
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
  if (durability == Durability::disk && ::fsync(descriptor_) != 0 && errno != EINVAL)
    cannot_write(path_, errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    cannot_write(path_, error);
  }
}

void AtomicFile::commit(Durability durability) {
  close(durability);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    cannot_write(path_, error);
  }
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

GrowingFile::GrowingFile(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
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

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) cannot_write(path, error.value());
}

}  // namespace cputrain
