#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <stdexcept>

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

/// What a process may take, beside what its parent has when it starts.
struct Limits {
  int cpu_seconds;
  int seconds;  ///< by the clock, where it waits for something
  std::size_t memory;
};

/// The system refuses or ends something; the file may be good.
class SystemFault : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Calls `write` in a process of its own, whose faults (a crash, an endless loop) end it alone. It
/// has the rights and the open files of this one. What it wrote is in `file` then. An Error of
/// `write` is thrown here, too, and std::runtime_error has what else it threw, or how the process
/// ended. `write` starts no threads and prints nothing.
void write_apart(MemoryFile& file, const Limits&,
                 const std::function<void(system::OutputFile&)>& write);

}  // namespace cputrain::hdf5
