#include "system/available_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace cputrain::system {
namespace {

/// The number after a word in a file of lines "word number ...".
std::optional<std::size_t> number_after(const char* path, const std::string& word) {
  std::ifstream file(path);
  for (std::string found; file >> found; file.ignore(256, '\n')) {
    std::size_t number = 0;
    if (found == word && file >> number) return number;
  }
  return std::nullopt;
}

std::optional<std::size_t> number_in(const char* path) {
  std::ifstream file(path);
  std::size_t number = 0;
  if (file >> number) return number;
  return std::nullopt;  // "max" where there is no limit
}

}  // namespace

std::optional<std::size_t> available_memory() {
  auto available = number_after("/proc/meminfo", "MemAvailable:");
  if (available) *available *= 1024;
  // A container's own limit (control groups, version 2), less what cannot be dropped.
  const auto limit = number_in("/sys/fs/cgroup/memory.max");
  const auto used = number_in("/sys/fs/cgroup/memory.current");
  if (limit && used) {
    const std::size_t cached =
        number_after("/sys/fs/cgroup/memory.stat", "inactive_file").value_or(0);
    const std::size_t kept = *used - std::min(*used, cached);
    const std::size_t left = *limit - std::min(*limit, kept);
    available = std::min(available.value_or(left), left);
  }
  return available;
}

std::size_t own_memory() {
  return number_after("/proc/self/status", "RssAnon:").value_or(0) * 1024;
}

}  // namespace cputrain::system
