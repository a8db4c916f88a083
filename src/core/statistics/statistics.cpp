#include "core/statistics/statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cassert>
#include <cmath>
#include <numbers>

namespace cputrain {

MedianInterval median_interval(std::vector<double> values, double confidence) {
  assert(!values.empty());
  std::ranges::sort(values);
  const std::size_t n = values.size();
  // Below the k-th smallest value lies the median where fewer than k values fall below it.
  // Logarithms, as 2 to the -n is no double from 1,075 values on.
  double log_term = -static_cast<double>(n) * std::numbers::ln2, tail = std::exp(log_term);
  MedianInterval found{{values.front(), values.back()}, 1 - 2 * tail};
  for (std::size_t k = 1; 2 * (k + 1) <= n; ++k) {
    log_term += std::log(static_cast<double>(n - k + 1) / static_cast<double>(k));
    tail += std::exp(log_term);
    if (1 - 2 * tail < confidence) break;
    found = {{values[k], values[n - 1 - k]}, 1 - 2 * tail};
  }
  if (n == 1) found.confidence = 0;
  return found;
}

double student_quantile(double p, double degrees) {
  return boost::math::quantile(boost::math::students_t(degrees), p);
}

namespace {

/// Mean of the logarithms, the variance of that mean (NaN for one value), and its degrees of
/// freedom.
struct LogMean {
  double mean, variance, degrees;
};

LogMean log_mean(std::span<const double> times) {
  const auto n = static_cast<double>(times.size());
  double mean = 0, squares = 0;
  for (const double t : times) mean += std::log(t) / n;
  for (const double t : times) squares += (std::log(t) - mean) * (std::log(t) - mean);
  return {mean, squares / (n - 1) / n, n - 1};
}

}  // namespace

TimeRatio compare_times(std::span<const double> a, std::span<const double> b) {
  const LogMean x = log_mean(a), y = log_mean(b);
  const double difference = y.mean - x.mean, variance = x.variance + y.variance;
  TimeRatio result{std::exp(difference), std::nullopt};
  if (a.size() < 2 || b.size() < 2) return result;
  double half = 0;
  if (variance > 0) {
    const double degrees =
        variance * variance /
        (x.variance * x.variance / x.degrees + y.variance * y.variance / y.degrees);
    half = student_quantile(0.975, degrees) * std::sqrt(variance);
  }
  result.interval = Interval{std::exp(difference - half), std::exp(difference + half)};
  return result;
}

}  // namespace cputrain
