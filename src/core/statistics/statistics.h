#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/statistics/median.h"

/// Statistics of a few repeated measurements.
namespace cputrain {

struct Interval {
  double low = 0, high = 0;
};

/// Two order statistics that hold the median of what the values are drawn from, whatever its
/// distribution, and the probability with which they do (binomial; Conover, "Practical
/// Nonparametric Statistics", 3.2). The narrowest pair that reaches `confidence`; all values where
/// none does: 3 values hold it with 0.75, 5 with 0.9375, 6 with 0.96875.
struct MedianInterval {
  Interval interval;
  double confidence = 0;
};
MedianInterval median_interval(std::vector<double> values, double confidence = 0.95);

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

}  // namespace cputrain
