#pragma once

#include <algorithm>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/statistics/median.h"

namespace cputrain {

/// Repeated measurements of one thing.
struct Spread {
  double median, min, max;
};

/// There is at least one value.
inline Spread spread_of(std::vector<double> values) {
  const auto [min, max] = std::ranges::minmax(values);
  return {median(std::move(values)), min, max};
}

/// So much a second, where it took so many seconds each time.
inline Spread spread_of_rates(double amount, std::vector<double> seconds) {
  for (double& value : seconds) value = amount / value;
  return spread_of(std::move(seconds));
}

nlohmann::ordered_json json_of(const Spread&);

}  // namespace cputrain
