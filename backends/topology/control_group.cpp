#include "backends/topology/control_group.h"

#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace cputrain::topology {

namespace {

namespace fs = std::filesystem;

/// "No limit" in version 1 is a number of about 2^63; nothing above this is one.
constexpr double kNoLimit = 1e18;

void tighten(double& limit, double found) {
  if (found > 0 && found < kNoLimit && (limit == 0 || found < limit)) limit = found;
}

std::optional<double> number_in(const fs::path& file) {
  std::ifstream in(file);
  double number = 0;
  if (in >> number) return number;
  return std::nullopt;
}

/// Version 2: "cpu.max" holds "<quota or max> <period>", both in microseconds.
void read_unified(const fs::path& group, GroupLimits& limits) {
  std::ifstream in(group / "cpu.max");
  double quota = 0, period = 0;
  if (in >> quota >> period && period > 0) tighten(limits.cpus, quota / period);
  tighten(limits.memory_bytes, number_in(group / "memory.max").value_or(0));
}

/// Version 1: a quota of -1 is none.
void read_cpu(const fs::path& group, GroupLimits& limits) {
  const auto quota = number_in(group / "cpu.cfs_quota_us");
  const auto period = number_in(group / "cpu.cfs_period_us");
  if (quota && period && *period > 0) tighten(limits.cpus, *quota / *period);
}

void read_memory(const fs::path& group, GroupLimits& limits) {
  tighten(limits.memory_bytes, number_in(group / "memory.limit_in_bytes").value_or(0));
}

/// Limits of the groups around ours hold as well. In a container the path may be one of the host
/// that is not to be seen from inside; the mount itself then is our group, and the last one read.
void climb(void (*read)(const fs::path&, GroupLimits&), const fs::path& mount,
           const fs::path& group, GroupLimits& limits) {
  for (fs::path at = group.relative_path(); !at.empty(); at = at.parent_path()) {
    read(mount / at, limits);
  }
  read(mount, limits);
}

}  // namespace

GroupLimits read_group_limits(const fs::path& root) {
  GroupLimits limits;
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {  // "<number>:<controllers>:<path>"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) climb(read_unified, mounts, group, limits);
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');) {
      // mounted as "cpu,cpuacct" with a link for each name
      if (name == "cpu") climb(read_cpu, mounts / name, group, limits);
      if (name == "memory") climb(read_memory, mounts / name, group, limits);
    }
  }
  return limits;
}

}  // namespace cputrain::topology
