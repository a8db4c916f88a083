#include "cells/prices.h"

#include "cells/cells.h"

namespace cputrain::cells {

std::optional<double> Prices::of(const std::string& backend, int cpus, double seconds) const {
  const double hours = seconds / 3600;
  for (const std::string& name : {backend, std::string()}) {
    if (const auto found = per_hour.find(name); found != per_hour.end()) {
      return hours * found->second;
    }
    if (const auto found = per_cpu_hour.find(name); found != per_cpu_hour.end()) {
      return hours * cpus * found->second;
    }
  }
  return std::nullopt;
}

std::optional<double> Prices::of(const Cell& cell) const {
  if (!cell.seconds_per_epoch) return std::nullopt;
  return of(cell.backend, cell.cpus, *cell.seconds_per_epoch);
}

}  // namespace cputrain::cells
