#include "system/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>

#include "core/error.h"
#include "system/print.h"

namespace cputrain::system {

namespace fs = std::filesystem;

namespace {

constexpr int kNotSupported = 524;  // ENOTSUPP, in the kernel's own headers alone

int sync(int descriptor) {
  while (::fsync(descriptor) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

/// Where files run out before bytes do, nothing but their number says so.
bool has_no_more_files(const std::filesystem::path& path) {
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  struct statvfs facts {};
  return ::statvfs(folder.c_str(), &facts) == 0 && facts.f_files > 0 && facts.f_favail == 0;
}

Descriptor open_to_read(const fs::path& path, int flags) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
}

/// What may help. Space is spoken of where it is what is missing.
std::string remedy_for(int error, const std::filesystem::path& path) {
  switch (error) {
    case ENOSPC:
      if (has_no_more_files(path)) {
        return "its file system can hold no more files (df -i): remove some or name another place";
      }
      [[fallthrough]];
    case EDQUOT:
      return "free space or name another place";
    case EFBIG:
      return "raise the limit of a file's size (ulimit -f)";
    case EMFILE:
      return "raise the limit of open files (ulimit -n)";
    case EIO:
      return "look at the disk or name another place";
    default:
      return "name another place";
  }
}

}  // namespace

bool is_lacking(int error, std::initializer_list<int> also) {
  constexpr int kAlways[] = {EINVAL, ENOSYS, EOPNOTSUPP, ENOTTY, kNotSupported};
  return std::ranges::count(kAlways, error) > 0 || std::ranges::count(also, error) > 0;
}

void do_without(std::string_view call, const std::filesystem::path& path, int error,
                std::string_view lost) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> said;
  {
    const std::lock_guard lock(mutex);
    if (!said.emplace(call).second) return;
  }
  tell("warning: the file system of {} has no {} ({}): {}", path.string(), call, error_text(error),
       lost);
}

std::string error_text(int error) {
  return std::strerror(error == kNotSupported ? ENOTSUP : error);
}

void cannot_write(const fs::path& path, int error) {
  fail(ExitCode::output, "cannot write " + path.string() + ": " + error_text(error) +
                             " (results would be lost); " + remedy_for(error, path));
}

void sync_open_file(int descriptor, const fs::path& path) {
  const int error = sync(descriptor);
  if (error == 0) return;
  if (!is_lacking(error, {EBADF, EACCES})) cannot_write(path, error);
  do_without("fsync of files", path, error, "a power cut may take what was written last");
}

void sync_file(const fs::path& path) {
  const Descriptor file = open_to_read(path, O_NONBLOCK);
  if (!file.is_open()) cannot_write(path, errno);
  sync_open_file(file.number(), path);
}

void sync_folder(const fs::path& folder) {
  const fs::path path = folder.empty() ? "." : folder;
  const Descriptor opened = open_to_read(path, O_DIRECTORY);
  if (!opened.is_open() && errno == EACCES) return;  // may be written and not read
  if (!opened.is_open()) cannot_write(path, errno);
  const int error = sync(opened.number());
  if (error == 0) return;
  if (!is_lacking(error, {EBADF, ENOENT, EISDIR, EACCES, EPERM})) cannot_write(path, error);
  do_without("fsync of folders", path, error, "a power cut may take the files that came last");
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  if (error || path.empty()) return path;
  const fs::path real = fs::weakly_canonical(absolute, error);
  return (error ? absolute : real).string();  // a loop of links, a folder that may not be read
}

bool is_present(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

std::string text_in(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();  // keeps to itself what reading throws
  return std::move(text).str();
}

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return;
  std::error_code ignored;
  const fs::path target = fs::read_symlink(path, ignored);
  if (target.empty() || fs::exists(path, ignored)) cannot_write(path, error.value());
  fail(ExitCode::output, "cannot write " + path.string() + ": it is a link to " + target.string() +
                             ", which is not there (results would be lost); make that folder or "
                             "name another place");
}

void make_own_folder(const std::filesystem::path& path) {
  struct stat about {};
  if (::lstat(path.c_str(), &about) == 0 && S_ISLNK(about.st_mode)) ::unlink(path.c_str());
  make_folder(path);
}

std::filesystem::path make_new_folder(const std::filesystem::path& path) {
  if (path.has_parent_path()) make_folder(path.parent_path());
  fs::path folder = path;
  for (int number = 2; ::mkdir(folder.c_str(), 0777) != 0; ++number) {
    if (errno != EEXIST) cannot_write(folder, errno);
    folder = path;
    folder += "-" + std::to_string(number);
  }
  return folder;
}

}  // namespace cputrain::system
