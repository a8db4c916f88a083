#pragma once

namespace cputrain::cells {

/// Cores that so many CPUs are, where one has so many hardware threads that count as CPUs.
constexpr int cores_of(int cpus, int cpus_per_core) {
  return (cpus + cpus_per_core - 1) / cpus_per_core;
}

}  // namespace cputrain::cells
