#pragma once

#include <map>
#include <optional>
#include <string>

namespace cputrain::cells {

struct Cell;

/// What an hour costs, of the whole machine, of one CPU or of one GPU, by backend; "" is for all
/// others.
struct Prices {
  std::map<std::string, double> per_hour, per_cpu_hour;
  /// Of backends of devices alone, where it comes before those of all backends.
  std::map<std::string, double> per_gpu_hour{};

  bool empty() const { return per_hour.empty() && per_cpu_hour.empty() && per_gpu_hour.empty(); }
  /// What so many seconds on so many CPUs or devices cost; nothing where this backend has no price.
  std::optional<double> of(const std::string& backend, int cpus, double seconds) const;
  /// What an epoch costs; nothing where the cell has no time, too.
  std::optional<double> of(const Cell&) const;
};

}  // namespace cputrain::cells
