#include "cells/prices.h"

#include "cells/cells.h"

namespace cputrain::cells {

std::optional<double> Prices::of(const Cell& cell) const {
  if (!cell.seconds_per_epoch) return std::nullopt;
  const double hours = *cell.seconds_per_epoch / 3600;
  for (const std::string& name : {cell.backend, std::string()}) {
    if (const auto found = per_hour.find(name); found != per_hour.end()) {
      return hours * found->second;
    }
    if (const auto found = per_cpu_hour.find(name); found != per_cpu_hour.end()) {
      return hours * cell.cpus * found->second;
    }
  }
  return std::nullopt;
}

}  // namespace cputrain::cells
