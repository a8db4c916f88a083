#pragma once

#include <span>
#include <vector>

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

}  // namespace cputrain
