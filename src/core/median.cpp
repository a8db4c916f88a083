#include "core/median.h"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace cputrain {

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double quantile(std::vector<double> values, double p) {
  assert(!values.empty() && p >= 0 && p <= 1);
  std::ranges::sort(values);
  const double place = p * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double part = place - static_cast<double>(below);
  return values[below] + part * (values[above] - values[below]);
}

}  // namespace cputrain
