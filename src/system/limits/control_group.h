#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace cputrain::system {

/// What the control groups (cgroups: how containers and batch systems limit processes) of this
/// process allow; the tightest of the group and those around it. 0: no limit.
struct GroupLimits {
  double cpus = 0;  ///< CPU seconds a second
  double memory_bytes = 0;
  double threads = 0;
  /// Bytes that can still be had: of the group with the least, its limit less what its processes
  /// hold and the system cannot drop. Nothing where there is no limit.
  std::optional<double> memory_left{};
  /// Which group limits CPU time, and which is the innermost that limits memory: the kernel's
  /// numbers of them, the same in all containers. 0: none does.
  std::uint64_t cpu_group = 0, memory_group = 0;
};

/// Reads both versions of control groups below `root`, which is "/" but for tests. Without any
/// there are no limits.
GroupLimits read_group_limits(const std::filesystem::path& root);

}  // namespace cputrain::system
