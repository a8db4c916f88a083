#include "system/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "system/file_lock.h"

namespace cputrain::system {
namespace {

[[noreturn]] void cannot_write(const std::filesystem::path& path, int error) {
  const char* remedy = error == EFBIG    ? "raise the limit of a file's size (ulimit -f)"
                       : error == EMFILE ? "raise the limit of open files (ulimit -n)"
                                         : "free space or name another place";
  fail(ExitCode::output, "cannot write " + path.string() + ": " + std::strerror(error) +
                             " (results would be lost); " + remedy);
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

constexpr std::string_view kTemporary = ".tmp";  // then process, hyphen, random number

/// Processes of two containers that share a file system may have one number.
std::string temporary_suffix() {
  return std::string(kTemporary) + std::to_string(::getpid()) + "-" +
         std::to_string(std::random_device()());
}

bool is_temporary_of(std::string_view name, std::string_view file) {
  const auto digits = [](std::string_view text) {
    return !text.empty() &&
           std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
  };
  if (!name.starts_with(file) || !name.substr(file.size()).starts_with(kTemporary)) return false;
  const std::string_view numbers = name.substr(file.size() + kTemporary.size());
  const std::size_t hyphen = numbers.find('-');
  return hyphen != numbers.npos && digits(numbers.substr(0, hyphen)) &&
         digits(numbers.substr(hyphen + 1));
}

/// Locked where the file system can; -1 with errno where it cannot be made. A process that clears
/// up may have taken it for abandoned before it was locked: then it is made again.
int open_temporary(const std::filesystem::path& path) {
  for (;;) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor < 0) return -1;
    struct stat about {};
    const bool taken = is_taken(try_lock(descriptor, FileLock::Kind::exclusive));
    if (!taken && (::fstat(descriptor, &about) != 0 || about.st_nlink > 0)) return descriptor;
    ::close(descriptor);
  }
}

bool is_old(const std::filesystem::path& path) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  return !error && std::filesystem::file_time_type::clock::now() - written > std::chrono::hours(24);
}

void remove_if_abandoned(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return;
  const Closing closing{descriptor};
  const int error = try_lock(descriptor, FileLock::Kind::exclusive);
  if (is_taken(error)) return;  // somebody writes it
  if (error == 0 || is_old(path)) ::unlink(path.c_str());
}

}  // namespace

void remove_abandoned(const std::filesystem::path& path) {
  const std::string file = path.filename().string();
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::error_code error;  // a folder that cannot be looked into shows when it is written
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_temporary_of(entry->path().filename().string(), file))
      remove_if_abandoned(entry->path());
  }
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  remove_abandoned(path_);
  temporary_ = path_;
  temporary_ += temporary_suffix();
  descriptor_ = open_temporary(temporary_);
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

}  // namespace cputrain::system
