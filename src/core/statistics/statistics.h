#pragma once

#include <algorithm>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

/// Statistics of a few repeated measurements.
namespace cputrain {

/// The middle value, or the mean of the two in the middle. Of at least one value.
double median(std::vector<double> values);

/// The value below which a part `p` (0 to 1) of the values lies, linear between neighbours: type 7
/// of Hyndman and Fan, "Sample Quantiles in Statistical Packages" (1996), R's and NumPy's default.
/// There is at least one value.
double quantile(std::vector<double> values, double p);

/// Each value divided by the median of its group. The values are in runs of the same length, one
/// run for each of `groups`, which may name a group several times.
std::vector<double> by_group_median(std::vector<double> values, std::span<const int> groups);

/// The mean over groups of their medians, so that each group counts alike, however many values it
/// has. Runs of values and `groups` as above; at least one value.
double mean_of_group_medians(const std::vector<double>& values, std::span<const int> groups);

/// A range of values with both its ends.
struct Interval {
  double low = 0, high = 0;
  bool operator==(const Interval&) const = default;
};

/// Two order statistics that hold the median of what the values are drawn from, whatever its
/// distribution, and the probability with which they do (binomial; Conover, "Practical
/// Nonparametric Statistics", 3.2). The narrowest pair that reaches `confidence`; all values where
/// none does: 3 values hold it with 0.75, 5 with 0.9375, 6 with 0.96875.
std::pair<Interval, double> median_interval(std::vector<double> values, double confidence = 0.95);

/// Student's t that a part `p` lies below, for `degrees` of freedom, whole or not.
double student_quantile(double p, double degrees);

/// How much longer `b` takes than `a`: below 1, `b` is quicker.
struct TimeRatio {
  double of_means = 1;               ///< geometric ones, which the interval is around
  std::optional<Interval> interval;  ///< 95 %; nothing where one of them has one value
};

/// Welch's t interval (1947, degrees by Satterthwaite 1946) for the difference of the mean
/// logarithms, taken back to a ratio: noise of times is in proportion, so logarithms are nearer to
/// a normal distribution, and variances need not be alike. Of at least one positive value each.
TimeRatio compare_times(std::span<const double> a, std::span<const double> b);

/// What an accuracy on so many images, at least one, may be among all images like these: 95 %
/// (Wilson, "Probable Inference", 1927).
Interval accuracy_interval(double accuracy, double images);

/// y = fixed + each * x.
struct Line {
  double fixed = 0, each = 0;
};
/// The line with the least sum of squared relative errors of y, at least one; neither part is
/// negative.
Line fit_line(std::span<const double> x, std::span<const double> y);

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
