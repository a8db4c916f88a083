#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

namespace cputrain::placement {

/// A process that is not mistaken for a later one with the same number.
struct ProcessIdentity {
  pid_t id = 0;
  std::uint64_t start = 0;  ///< clock ticks since the machine started

  bool operator==(const ProcessIdentity&) const = default;
};

/// Nothing where there is no such process, or `proc` does not show it.
std::optional<ProcessIdentity> identity_of(pid_t, const std::filesystem::path& proc = "/proc");

/// Whether that process has ended; a zombie has. False where it cannot be found out.
bool is_gone(const ProcessIdentity&, const std::filesystem::path& proc = "/proc");

/// The launcher of a process that was started as a rank: the nearest ancestor of `process` with a
/// launcher's name (mpirun, orted, hydra_pmi_proxy, slurmstepd and their kin), else its parent.
/// Nothing where that is the first process of the machine or container, which takes in orphans, or
/// where `proc` does not show it.
std::optional<ProcessIdentity> find_launcher(pid_t process,
                                             const std::filesystem::path& proc = "/proc");

/// Asks, for system::SignalWatch::end_when, whether the launcher of this process has ended since
/// now. Empty where none is found. Some microseconds a call.
std::function<bool()> launcher_gone();

}  // namespace cputrain::placement
