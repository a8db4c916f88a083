#pragma once

#include <cstddef>
#include <span>

namespace cputrain::system {

/// What is asked of the machine everywhere: how late it is, and memory. Ranks that are simulated in
/// one process have a clock and pages of their own (backends/sim/core.h).
struct HostCalls {
  double (*seconds)();  ///< on the clock of steady_seconds()
  /// An area of Pages, of at least a byte; Error(internal) where there is none. Of one that is
  /// touched sparsely only what is takes memory, in small pages, and only that counts where the
  /// system promises no more than it has.
  std::span<std::byte> (*map)(std::size_t bytes, bool sparsely);
  void (*unmap)(std::span<std::byte>);
};

/// The kernel's, unless others were set.
const HostCalls& host_calls();

/// For the whole process. A program sets them as it begins, if at all: before it has threads,
/// stopwatches or pages.
void set_host_calls(const HostCalls&);

}  // namespace cputrain::system
