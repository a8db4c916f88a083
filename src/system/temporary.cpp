#include "system/temporary.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <random>
#include <thread>
#include <utility>

namespace cputrain::system {
namespace {

constexpr std::string_view kTemporary = ".tmp";

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

/// A writer changes its file more often than once a day.
bool is_old(const struct stat& about) {
  constexpr std::time_t kDay = 24 * 3600;
  return ::time(nullptr) - about.st_mtime > kDay;
}

bool is_there(const std::filesystem::path& path) {
  struct stat about {};
  return ::lstat(path.c_str(), &about) == 0 || errno != ENOENT;
}

std::filesystem::path folder_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

/// Whether an open file or folder lies on a file system that one machine alone can write to, so
/// that locks show all processes that are at work there, in containers, too. Over a network each
/// machine may know its own locks alone.
bool shows_all_locks(int descriptor) {
  constexpr std::array<unsigned long, 12> kTypes{
      EXT4_SUPER_MAGIC,  XFS_SUPER_MAGIC,   BTRFS_SUPER_MAGIC,    F2FS_SUPER_MAGIC,
      TMPFS_MAGIC,       RAMFS_MAGIC,       0x2fc12fc1,  // ZFS
      0xca451a4e,                                        // bcachefs
      0x3153464a,                                        // JFS
      MSDOS_SUPER_MAGIC, EXFAT_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC};
  struct statfs about {};
  if (::fstatfs(descriptor, &about) != 0) return false;
  // Some systems keep the 32 bits of a type as a signed number.
  const auto type = static_cast<unsigned long>(about.f_type) & 0xffffffff;
  return std::ranges::find(kTypes, type) != kTypes.end();
}

}  // namespace

std::string temporary_suffix() {
  return std::string(kTemporary) + std::to_string(::getpid()) + "-" +
         std::to_string(std::random_device()());
}

bool is_temporary_of(std::string_view name, std::string_view file) {
  if (!name.starts_with(file) || !name.substr(file.size()).starts_with(kTemporary)) return false;
  const std::string_view numbers = name.substr(file.size() + kTemporary.size());
  const std::size_t hyphen = numbers.find('-');
  return hyphen != numbers.npos && is_number(numbers.substr(0, hyphen)) &&
         is_number(numbers.substr(hyphen + 1));
}

/// A process that clears up may have taken it for abandoned before it was locked: then it is made
/// again when it is gone. Its name says that, since some file systems count no links (st_nlink).
int open_locked(const std::filesystem::path& path) {
  constexpr int kTries = 1000;
  for (int i = 0;; ++i) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor < 0) return -1;
    const bool taken = is_taken(try_lock(descriptor, FileLock::Kind::exclusive));
    for (int wait = 0; taken && wait < kTries && is_there(path); ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (is_there(path) || i == kTries) return descriptor;
    close_locked(descriptor);
  }
}

bool is_left(int descriptor) {
  struct stat about {};
  if (::fstat(descriptor, &about) != 0 || about.st_uid != ::geteuid()) return false;
  return shows_all_locks(descriptor) || is_old(about);
}

AbandonedFile::AbandonedFile(const std::filesystem::path& path) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  missing_ = !file.is_open() && errno == ENOENT;
  struct stat about {};
  if (::fstat(file.number(), &about) != 0 || !S_ISREG(about.st_mode)) return;
  const int error = try_lock(file.number(), FileLock::Kind::exclusive);
  free_ = error == 0 || (!is_taken(error) && is_old(about));
  abandoned_ = free_ && is_left(file.number());
  if (error == 0) lock_.emplace(std::move(file));
}

void remove_quietly(const std::filesystem::path& path) noexcept {
  try {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  } catch (const std::exception&) {  // no memory for names
  }
}

std::optional<std::filesystem::path> cache_folder() {
  std::filesystem::path cache = folder_in("XDG_CACHE_HOME");
  if (!cache.is_absolute()) {  // which the XDG specification demands
    const std::filesystem::path home = folder_in("HOME");
    if (!home.is_absolute()) return std::nullopt;
    cache = home / ".cache";
  }
  return cache / "cputrain";
}

}  // namespace cputrain::system
