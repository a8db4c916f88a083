#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "system/file_lock.h"

/// What is written aside and gets its name when it is whole: temporary names, and locks that show
/// other processes whether the writer lives. And where what may be made again is kept.
namespace cputrain::system {

/// ".tmp<process>-<random number>", to be added to a name. Processes of two containers that share a
/// file system may have one number.
std::string temporary_suffix();

/// Whether `name` is that of `file` with such a suffix.
bool is_temporary_of(std::string_view name, std::string_view file);

/// Makes a file that is not there yet for writing, and locks it where the file system has locks,
/// for as long as the descriptor is open; close_locked() gives it back. -1 with errno where that
/// fails.
int open_locked(const std::filesystem::path&);

/// Whether a file or folder that no process is seen to have locked is left over from a dead one: it
/// is this user's, and other machines can have no locks there, or it was not written for a day.
bool is_left(int descriptor);

/// Asks about a file of open_locked() whether the process that writes it is gone, and keeps others
/// from taking the file up while one lives.
class AbandonedFile {
 public:
  explicit AbandonedFile(const std::filesystem::path&);

  /// Its lock is free, and it is_left(): it may be removed.
  bool is_abandoned() const { return abandoned_; }
  /// Its lock is free here; without locks: it was not written for a day. Whoever knows that he
  /// alone works in the folder may go on with it.
  bool is_free() const { return free_; }
  bool is_missing() const { return missing_; }

 private:
  std::optional<FileLock> lock_{};
  bool free_ = false, abandoned_ = false, missing_ = false;
};

/// Removes a file or a link, or a folder with all that is in it. What cannot be removed stays.
void remove_quietly(const std::filesystem::path&) noexcept;

/// The same at the end of its scope.
class RemovedInTheEnd {
 public:
  explicit RemovedInTheEnd(std::filesystem::path removed) : path(std::move(removed)) {}
  ~RemovedInTheEnd() { remove_quietly(path); }
  RemovedInTheEnd(const RemovedInTheEnd&) = delete;
  RemovedInTheEnd& operator=(const RemovedInTheEnd&) = delete;

  const std::filesystem::path path;
};

/// "cputrain" in the user's cache folder ($XDG_CACHE_HOME, else ~/.cache), which need not exist;
/// nothing where the environment names none.
std::optional<std::filesystem::path> cache_folder();

}  // namespace cputrain::system
