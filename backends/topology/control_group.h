#pragma once

#include <filesystem>

namespace cputrain::topology {

/// What the control groups (cgroups: how containers and batch systems limit processes) of this
/// process allow; the tightest of the group and those around it. 0: no limit.
struct GroupLimits {
  double cpus = 0;  ///< CPU seconds a second
  double memory_bytes = 0;
};

/// Reads both versions of control groups below `root`, which is "/" but for tests. Without any
/// there are no limits.
GroupLimits read_group_limits(const std::filesystem::path& root);

}  // namespace cputrain::topology
