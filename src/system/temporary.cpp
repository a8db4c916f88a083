#include "system/temporary.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "system/file_lock.h"

namespace cputrain::system {
namespace {

constexpr std::string_view kTemporary = ".tmp";

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

bool is_old(const std::filesystem::path& path) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  return !error && std::filesystem::file_time_type::clock::now() - written > std::chrono::hours(24);
}

bool is_there(const std::filesystem::path& path) {
  struct stat about {};
  return ::lstat(path.c_str(), &about) == 0 || errno != ENOENT;
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

AbandonedFile::AbandonedFile(const std::filesystem::path& path)
    : descriptor_(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)) {
  if (descriptor_ < 0) {
    missing_ = errno == ENOENT;
    return;
  }
  const int error = try_lock(descriptor_, FileLock::Kind::exclusive);
  abandoned_ = error == 0 || (!is_taken(error) && is_old(path));
  if (error != 0) ::close(std::exchange(descriptor_, -1));  // with no lock to give back
}

AbandonedFile::~AbandonedFile() {
  if (descriptor_ >= 0) close_locked(descriptor_);
}

}  // namespace cputrain::system
