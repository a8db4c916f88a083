#pragma once

#include <filesystem>
#include <optional>
#include <utility>

#include "system/file_system.h"

namespace cputrain::system {

/// A lock that the system takes back when its process ends, however that happens.
class FileLock {
 public:
  enum class Kind { exclusive, shared };

  /// Makes the file where it is missing, for as many users as may write its folder. Nothing where
  /// another process has the lock. Error(output) where the file cannot be made; Error(usage) where
  /// it is there and cannot be locked, with its owner: another user may hold it. Where the file
  /// system has no locks a line says so, and it is done without.
  static std::optional<FileLock> take(const std::filesystem::path&, Kind);
  /// Takes over an open file that is locked already.
  explicit FileLock(Descriptor locked) : file_(std::move(locked)) {}
  ~FileLock();
  FileLock(FileLock&&) = default;
  FileLock& operator=(FileLock&&) = default;

 private:
  Descriptor file_;
};

/// Tries to lock a whole open file for writing (exclusive) or reading (shared), without waiting;
/// errno, 0 for success. The lock goes with the last descriptor of this open file, duplicates
/// included.
int try_lock(int descriptor, FileLock::Kind);

/// Gives the lock back and closes: FUSE tells its server of no lock that ends with a descriptor.
void close_locked(int descriptor);

/// Whether that error means that another process has the lock, and not that there are no locks
/// here.
bool is_taken(int lock_error);

/// Looks whether a process has a lock on a file that may be read, without taking it.
class LockProbe {
 public:
  explicit LockProbe(const std::filesystem::path&);

  /// False where the file has been removed from its folder. True where nothing can be found out:
  /// no such folder here (another host), a file that may not be read, or a file system without
  /// locks.
  bool held() const;

 private:
  Descriptor file_;
  bool removed_;
};

}  // namespace cputrain::system
