#pragma once

#include <filesystem>
#include <functional>

#include "system/files.h"

namespace cputrain::hdf5 {

/// A file without a name, in memory. It is gone with the last descriptor of it.
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }
  /// By which this process opens it as any file.
  std::filesystem::path path() const;

 private:
  int descriptor_;
};

/// Calls `write` in a process of its own, whose faults (a crash, an endless loop: at most so many
/// seconds of CPU time) end it alone. What it wrote is in `file` then. An Error of
/// `write` is thrown here, too, and std::runtime_error has what else it threw, or how the process
/// ended. `write` starts no threads and prints nothing.
void write_apart(MemoryFile& file, int most_seconds,
                 const std::function<void(system::OutputFile&)>& write);

}  // namespace cputrain::hdf5
