#include "system/limits/available_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "system/limits/control_group.h"

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

std::optional<std::size_t> left_on_machine() {
  const auto units = number_after("/proc/meminfo", "MemAvailable:");
  return units ? std::optional(*units * 1024) : std::nullopt;
}

std::optional<std::size_t> left_in_group() {
  const auto left = read_group_limits("/").memory_left;
  return left ? std::optional(static_cast<std::size_t>(*left)) : std::nullopt;
}

}  // namespace

std::optional<std::size_t> available_memory() {
  const auto on_machine = left_on_machine(), in_group = left_in_group();
  return on_machine && in_group ? std::min(on_machine, in_group)
                                : (on_machine ? on_machine : in_group);
}

bool group_limits_memory() {
  const auto on_machine = left_on_machine(), in_group = left_in_group();
  return in_group && (!on_machine || *in_group < *on_machine);
}

std::uint64_t memory_group() { return read_group_limits("/").memory_group; }

std::size_t own_memory() {
  return number_after("/proc/self/status", "RssAnon:").value_or(0) * 1024;
}

}  // namespace cputrain::system
