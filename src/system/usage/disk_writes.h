#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace cputrain::system {

/// Whether the disk below a folder gets on: a file whose end waits for the disk (fsync) uses no CPU
/// time, and may wait for what others have written before it.
class DiskWrites {
 public:
  /// `root` stands for the system's / in tests, and `kind` for the folder's file system, a number
  /// of linux/magic.h.
  explicit DiskWrites(const std::filesystem::path& folder, const std::filesystem::path& root = "/",
                      std::optional<long> kind = std::nullopt);

  /// Writes that the disk has completed, whoever asked for them, as the system counts them. Of
  /// overlayfs and others that name no disk, those of all disks; 0 where none is known, as of a
  /// file system of a network. Touches no storage.
  std::uint64_t completed() const;
  /// Whether these are of one disk, the folder's own.
  bool is_one() const;

 private:
  std::filesystem::path counters_;  ///< a file of a line per disk; empty: none
};

}  // namespace cputrain::system
