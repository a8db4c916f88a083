#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace cputrain {

/// Repeated measurements of one thing.
struct Spread {
  double median, min, max;
};

/// Of at least one value.
inline Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  const double median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  return {median, values.front(), values.back()};
}

inline nlohmann::ordered_json json_of(const Spread& s) {
  return {{"median", s.median}, {"min", s.min}, {"max", s.max}};
}

/// Null where it is not known.
inline nlohmann::ordered_json json_of(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

}  // namespace cputrain
