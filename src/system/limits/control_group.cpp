#include "system/limits/control_group.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace cputrain::system {
namespace {

namespace fs = std::filesystem;

/// "No limit" in version 1 is a number of about 2^63; nothing above this is one.
constexpr double kNoLimit = 1e18;

bool is_limit(double found) { return found >= 0 && found < kNoLimit; }

/// Whether it is now.
bool tighten(double& limit, double found) {
  const bool tighter = found > 0 && is_limit(found) && (limit == 0 || found < limit);
  if (tighter) limit = found;
  return tighter;
}

std::uint64_t number_of_group(const fs::path& group) {
  struct stat about {};
  return ::stat(group.c_str(), &about) == 0 ? about.st_ino : 0;
}

void tighten_cpus(const fs::path& group, double found, GroupLimits& limits) {
  if (tighten(limits.cpus, found)) limits.cpu_group = number_of_group(group);
}

std::optional<double> number_in_file(const fs::path& file) {
  std::ifstream in(file);
  double number = 0;
  if (in >> number) return number;
  return std::nullopt;  // "max" where there is no limit
}

/// The number after a word in a file of lines "word number"; 0 without it.
double number_after(const fs::path& file, const std::string& word) {
  std::ifstream in(file);
  double number = 0;
  for (std::string found; in >> found >> number;) {
    if (found == word) return number;
  }
  return 0;
}

/// A file with a limit, one with what counts for it, and the line of memory.stat for the part of
/// that in files read long ago, which the system drops first.
void read_memory(const fs::path& group, const char* limit_file, const char* used_file,
                 const char* droppable, GroupLimits& limits) {
  const auto limit = number_in_file(group / limit_file);
  if (!limit || !is_limit(*limit)) return;
  tighten(limits.memory_bytes, *limit);
  if (limits.memory_group == 0) limits.memory_group = number_of_group(group);
  const double used = number_in_file(group / used_file).value_or(0);  // at most the limit is left
  const double kept = std::max(0.0, used - number_after(group / "memory.stat", droppable));
  const double left = std::max(0.0, *limit - kept);
  limits.memory_left = std::min(limits.memory_left.value_or(left), left);
}

/// The same file in both versions.
void read_threads(const fs::path& group, GroupLimits& limits) {
  tighten(limits.threads, number_in_file(group / "pids.max").value_or(0));
}

/// Version 2: "cpu.max" holds "<quota or max> <period>", both in microseconds. Above "memory.high"
/// the system slows processes down until they hardly move.
void read_unified(const fs::path& group, GroupLimits& limits) {
  std::ifstream in(group / "cpu.max");
  double quota = 0, period = 0;
  if (in >> quota >> period && period > 0) tighten_cpus(group, quota / period, limits);
  for (const char* limit : {"memory.max", "memory.high"}) {
    read_memory(group, limit, "memory.current", "inactive_file", limits);
  }
  read_threads(group, limits);
}

/// Version 1: a quota of -1 is none.
void read_cpu(const fs::path& group, GroupLimits& limits) {
  const auto quota = number_in_file(group / "cpu.cfs_quota_us");
  const auto period = number_in_file(group / "cpu.cfs_period_us");
  if (quota && period && *period > 0) tighten_cpus(group, *quota / *period, limits);
}

void read_memory_1(const fs::path& group, GroupLimits& limits) {
  read_memory(group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
              limits);
}

/// The path of our group below its mount. A container may be shown the host's path of it where its
/// mount begins at a group further in; what is there of the path's end then leads to ours.
fs::path below_mount(const fs::path& mount, const fs::path& group) {
  fs::path path = group.lexically_normal().relative_path();  // "/../x" is not to be seen
  std::error_code error;
  while (!path.empty() && !fs::is_directory(mount / path, error)) {
    path = path.lexically_relative(*path.begin());
    if (path == ".") path.clear();
  }
  return path;
}

/// Limits of the groups around ours hold as well, up to the mount, which is one of them.
void climb(void (*read)(const fs::path&, GroupLimits&), const fs::path& mount,
           const fs::path& group, GroupLimits& limits) {
  for (fs::path at = below_mount(mount, group); !at.empty(); at = at.parent_path()) {
    read(mount / at, limits);
  }
  read(mount, limits);
}

/// How a controller of version 1 is read; null for those that limit nothing of ours.
void (*reader_of(const std::string& controller))(const fs::path&, GroupLimits&) {
  if (controller == "cpu") return read_cpu;
  if (controller == "memory") return read_memory_1;
  if (controller == "pids") return read_threads;
  return nullptr;
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
      if (const auto read = reader_of(name)) climb(read, mounts / name, group, limits);
    }
  }
  return limits;
}

}  // namespace cputrain::system
