#include "core/statistics/statistics.h"

#include <boost/math/distributions/students_t.hpp>
#include <cassert>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
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

double mean_of_logs(std::span<const double> times) {
  double mean = 0;
  for (const double t : times) mean += std::log(t) / static_cast<double>(times.size());
  return mean;
}

/// Variance of that mean; NaN for one value.
double variance_of_mean(std::span<const double> times, double mean) {
  const auto n = static_cast<double>(times.size());
  double squares = 0;
  for (const double t : times) squares += (std::log(t) - mean) * (std::log(t) - mean);
  return squares / (n - 1) / n;
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

std::pair<Interval, double> median_interval(std::vector<double> values, double confidence) {
  assert(!values.empty());
  std::ranges::sort(values);
  const std::size_t n = values.size();
  // Below the k-th smallest value lies the median where fewer than k values fall below it.
  // Logarithms, as 2 to the -n is no double from 1,075 values on.
  double log_term = -static_cast<double>(n) * std::numbers::ln2, tail = std::exp(log_term);
  std::pair found{Interval{values.front(), values.back()}, 1 - 2 * tail};
  for (std::size_t k = 1; 2 * (k + 1) <= n; ++k) {
    log_term += std::log(static_cast<double>(n - k + 1) / static_cast<double>(k));
    tail += std::exp(log_term);
    if (1 - 2 * tail < confidence) break;
    found = {Interval{values[k], values[n - 1 - k]}, 1 - 2 * tail};
  }
  if (n == 1) found.second = 0;
  return found;
}

double student_quantile(double p, double degrees) {
  return boost::math::quantile(boost::math::students_t(degrees), p);
}

TimeRatio compare_times(std::span<const double> a, std::span<const double> b) {
  const double of_a = mean_of_logs(a), of_b = mean_of_logs(b), difference = of_b - of_a;
  const double x = variance_of_mean(a, of_a), y = variance_of_mean(b, of_b), variance = x + y;
  TimeRatio result{std::exp(difference), std::nullopt};
  if (a.size() < 2 || b.size() < 2) return result;
  double half = 0;
  if (variance > 0) {
    const double degrees =
        variance * variance /
        (x * x / static_cast<double>(a.size() - 1) + y * y / static_cast<double>(b.size() - 1));
    half = student_quantile(0.975, degrees) * std::sqrt(variance);
  }
  result.interval = Interval{std::exp(difference - half), std::exp(difference + half)};
  return result;
}

Interval accuracy_interval(double accuracy, double images) {
  constexpr double kNormal = 1.959964;  // its quantile of 0.975
  const double z = kNormal * kNormal / images;
  const double middle = (accuracy + z / 2) / (1 + z);
  const double half = std::sqrt(z * (accuracy * (1 - accuracy) + z / 4)) / (1 + z);
  return {middle - half, middle + half};
}

Line fit_line(std::span<const double> x, std::span<const double> y) {
  // Weights 1 / y^2 make the errors relative.
  double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double weight = y[i] > 0 ? 1 / (y[i] * y[i]) : 0;
    w += weight;
    wx += weight * x[i];
    wy += weight * y[i];
    wxx += weight * x[i] * x[i];
    wxy += weight * x[i] * y[i];
  }
  if (w == 0) return {};
  const double determinant = w * wxx - wx * wx;
  const double each = determinant > 1e-12 * w * wxx ? (w * wxy - wx * wy) / determinant : -1;
  const double fixed = (wy - each * wx) / w;
  if (each < 0) return {wy / w, 0};  // one point only, or values that fall
  return fixed < 0 ? Line{0, wxy / wxx} : Line{fixed, each};
}

nlohmann::ordered_json json_of(const Spread& s) {
  return {{"median", s.median}, {"min", s.min}, {"max", s.max}};
}

}  // namespace cputrain
