#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace cputrain::system {

/// Bytes of memory that this process has held.
struct HeldMemory {
  /// Resident at the most until now (VmHWM), shared pages and those of files included: what `time
  /// -v` reports.
  std::size_t peak = 0;
  /// Its part of a machine's memory at that time: shared pages are divided by the processes that
  /// have them, and pages of files, which the system may drop, are left out. How many pages are
  /// shared is known of now alone, so what the peak had beyond them counts as its own.
  std::size_t part = 0;
};

/// Nothing where the system does not report it.
std::optional<HeldMemory> held_memory();

/// The peak counts from now on, as far as the system does that (/proc/self/clear_refs): for what
/// was held for something else than the work.
void forget_peak();

/// The same from the texts of /proc/PID/status and of /proc/PID/smaps_rollup.
std::optional<HeldMemory> held_memory_of(std::string_view status, std::string_view rollup);

}  // namespace cputrain::system
