#include "core/statistics.h"

#include <algorithm>
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

namespace {

/// The continued fraction of the incomplete beta function, for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr int kMostTerms = 10'000;
  const auto away_from_zero = [](double v) { return std::fabs(v) < kTiny ? kTiny : v; };
  double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), result = d;
  for (int m = 1; m < kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    result *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    result *= c * d;
    if (std::fabs(c * d - 1) < 1e-15) break;
  }
  return result;
}

}  // namespace

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
  const double factor = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                 a * std::log(x) + b * std::log1p(-x));
  return factor * beta_fraction(a, b, x) / a;
}

double student_quantile(double p, double degrees) {
  assert(p > 0 && p < 1 && degrees > 0);
  if (p < 0.5) return -student_quantile(1 - p, degrees);
  // The part above t, which falls as t grows.
  const auto above = [&](double t) {
    return 0.5 * incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
  };
  double low = 0, high = 1;
  while (above(high) > 1 - p && high < 1e150) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-14 * high; ++i) {
    const double middle = (low + high) / 2;
    (above(middle) > 1 - p ? low : high) = middle;
  }
  return (low + high) / 2;
}

namespace {

/// Mean of the logarithms, the variance of that mean (not a number for one value), and its degrees
/// of freedom.
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
