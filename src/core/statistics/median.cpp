#include "core/statistics/median.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <map>
#include <utility>

namespace cputrain {
namespace {

std::map<int, double> group_medians(const std::vector<double>& values,
                                    std::span<const int> groups) {
  assert(!groups.empty() && values.size() % groups.size() == 0);
  const std::size_t each = values.size() / groups.size();
  std::map<int, std::vector<double>> members;
  for (std::size_t i = 0; i < values.size(); ++i) members[groups[i / each]].push_back(values[i]);
  std::map<int, double> medians;
  for (auto& [group, of_group] : members) medians[group] = median(std::move(of_group));
  return medians;
}

}  // namespace

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

std::vector<double> by_group_median(std::vector<double> values, std::span<const int> groups) {
  const std::map<int, double> medians = group_medians(values, groups);
  const std::size_t each = values.size() / groups.size();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] /= medians.at(groups[i / each]);
  return values;
}

double mean_of_group_medians(const std::vector<double>& values, std::span<const int> groups) {
  const std::map<int, double> medians = group_medians(values, groups);
  double sum = 0;
  for (const auto& [group, median_of_group] : medians) sum += median_of_group;
  return sum / static_cast<double>(medians.size());
}

}  // namespace cputrain
