#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/median.h"

namespace cputrain {

/// Repeated measurements of one thing.
struct Spread {
  double median, min, max;
};

/// Of at least one value.
inline Spread spread_of(std::vector<double> values) {
  const auto [min, max] = std::ranges::minmax(values);
  return {median(std::move(values)), min, max};
}

inline nlohmann::ordered_json json_of(const Spread& s) {
  return {{"median", s.median}, {"min", s.min}, {"max", s.max}};
}

/// Null where it is not known.
inline nlohmann::ordered_json json_of(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

}  // namespace cputrain
