#pragma once

#include <cstdint>
#include <filesystem>

namespace cputrain::system {

/// Whether the disk below a folder gets on: a file whose end waits for the disk (fsync) uses no CPU
/// time, and may wait for what others have written before it.
class DiskWrites {
 public:
  /// `root` stands for the system's / in tests.
  explicit DiskWrites(const std::filesystem::path& folder, std::filesystem::path root = "/");

  /// Writes that the disk has completed, whoever asked for them, as the system counts them. Of
  /// overlayfs and others that name no disk, those of all disks; 0 where none is known, as of a
  /// file system of a network. Touches no storage.
  std::uint64_t completed() const;

 private:
  std::filesystem::path counters_;  ///< a file of a line per disk; empty: none
};

}  // namespace cputrain::system
