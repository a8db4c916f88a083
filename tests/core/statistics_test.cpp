#include "core/statistics/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace cputrain {
namespace {

using Values = std::vector<double>;

TEST(Statistics, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({10, 2, 2, 8, 2}), 2);
  EXPECT_EQ(median({1, 100}), 50.5);
}

// R: quantile(1:4, .25, type = 7) is 1.75; by hand 1 + 0.25 * 3 places.
TEST(Statistics, QuantilesLieBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(quantile({4, 3, 2, 1}, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(quantile({4, 3, 2, 1}, 0.75), 3.25);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4, 5}, 0.9), 4.6);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4, 5}, 0.5), 3);
  EXPECT_EQ(quantile({5, 1, 3}, 0), 1);
  EXPECT_EQ(quantile({5, 1, 3}, 1), 5);
  EXPECT_EQ(quantile({5}, 0.3), 5);
}

// Groups 7 (2, 4, 5, 3: median 3.5) and 1 (10, 30: median 20), in runs of two.
TEST(Statistics, DividesByTheMedianOfTheGroup) {
  const std::vector<double> parts = by_group_median({2, 4, 10, 30, 5, 3}, std::vector{7, 1, 7});
  const std::vector<double> expected{2 / 3.5, 4 / 3.5, 0.5, 1.5, 5 / 3.5, 3 / 3.5};
  ASSERT_EQ(parts.size(), expected.size());
  for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_DOUBLE_EQ(parts[i], expected[i]) << i;
}

// Medians 3.5 and 20, however many runs a group has.
TEST(Statistics, MeansOverGroupsCountThemAlike) {
  EXPECT_DOUBLE_EQ(mean_of_group_medians({2, 4, 10, 30, 5, 3}, std::vector{7, 1, 7}), 11.75);
  EXPECT_DOUBLE_EQ(mean_of_group_medians({1, 9, 2, 100, 3}, std::vector{0, 0, 0, 5, 0}), 51.25);
  EXPECT_DOUBLE_EQ(mean_of_group_medians({6, 1, 2}, std::vector{4, 4, 4}), 2);
}

// The chance that all n values lie on one side of the median is 2 / 2^n; that at most one lies on
// one side 2 (1 + n) / 2^n.
TEST(Statistics, IntervalOfAMedianIsMadeOfOrderStatistics) {
  const struct {
    Values values;
    double low, high, confidence;
  } cases[] = {{{5}, 5, 5, 0},
               {{2, 1}, 1, 2, 0.5},
               {{3, 1, 2}, 1, 3, 0.75},
               {{1, 2, 3, 4, 5}, 1, 5, 0.9375},
               {{6, 5, 4, 3, 2, 1}, 1, 6, 0.96875},
               {{1, 2, 3, 4, 5, 6, 7, 8}, 1, 8, 1 - 2 / 256.0},  // [2, 7] has 1 - 18 / 256 only
               {{1, 2, 3, 4, 5, 6, 7, 8, 9}, 2, 8, 1 - 20 / 512.0},
               {{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 2, 9, 1 - 22 / 1024.0}};
  for (const auto& c : cases) {
    const auto [interval, confidence] = median_interval(c.values);
    EXPECT_EQ(interval.low, c.low) << c.values.size();
    EXPECT_EQ(interval.high, c.high) << c.values.size();
    EXPECT_DOUBLE_EQ(confidence, c.confidence) << c.values.size();
  }
}

// Many values: the interval reaches 0.98 times the root of n from the middle (normal approximation
// of the binomial), and its confidence is just above the one asked for.
TEST(Statistics, IntervalOfAMedianOfManyValues) {
  for (const int n : {1000, 1076, 20000}) {
    Values values;
    for (int i = 1; i <= n; ++i) values.push_back(i);
    const auto [interval, confidence] = median_interval(values);
    EXPECT_NEAR(interval.low, n / 2.0 - 0.98 * std::sqrt(n), 1.5) << n;
    EXPECT_NEAR(interval.high, n / 2.0 + 0.98 * std::sqrt(n), 1.5) << n;
    EXPECT_GE(confidence, 0.95) << n;
    EXPECT_LT(confidence, 0.956) << n;
  }
}

// One degree of freedom is Cauchy's distribution, two have (2p - 1) / sqrt(2p (1 - p)); the others
// are from printed tables.
TEST(Statistics, StudentQuantiles) {
  for (const double p : {0.6, 0.9, 0.975, 0.999}) {
    const double cauchy = std::tan(std::numbers::pi * (p - 0.5));
    EXPECT_NEAR(student_quantile(p, 1), cauchy, 1e-10 * cauchy);
    EXPECT_NEAR(student_quantile(p, 2), (2 * p - 1) / std::sqrt(2 * p * (1 - p)), 1e-10);
    EXPECT_DOUBLE_EQ(student_quantile(1 - p, 2), -student_quantile(p, 2));
  }
  EXPECT_NEAR(student_quantile(0.975, 4), 2.776, 5e-4);
  EXPECT_NEAR(student_quantile(0.95, 5), 2.015, 5e-4);
  EXPECT_NEAR(student_quantile(0.975, 10), 2.228, 5e-4);
  EXPECT_NEAR(student_quantile(0.995, 30), 2.750, 5e-4);
  EXPECT_NEAR(student_quantile(0.975, 1e6), 1.959966, 1e-5);
  EXPECT_NEAR(student_quantile(0.5, 7), 0, 1e-12);
}

// Logarithms 0 and 2, 3 and 5: means 1 and 4, variances of the means 1 and 1, degrees
// (1 + 1)^2 / (1 + 1) = 2, so the half width is 4.3027 * sqrt(2).
TEST(Statistics, RatioOfTimesByHand) {
  const Values a{1, std::exp(2.0)}, b{std::exp(3.0), std::exp(5.0)};
  const TimeRatio ratio = compare_times(a, b);
  EXPECT_NEAR(ratio.of_means, std::exp(3.0), 1e-9);
  ASSERT_TRUE(ratio.interval);
  const double half = 0.95 / std::sqrt(2 * 0.975 * 0.025) * std::sqrt(2.0);
  EXPECT_NEAR(std::log(ratio.interval->low), 3 - half, 1e-9);
  EXPECT_NEAR(std::log(ratio.interval->high), 3 + half, 1e-9);
}

// Skewed repeats: the ratio of their medians, 2, is another.
TEST(Statistics, TheRatioLiesInItsInterval) {
  const TimeRatio ratio = compare_times(Values{1, 1, 1, 1, 1.001}, Values{1, 1, 1, 2, 2, 2, 2});
  EXPECT_NEAR(ratio.of_means, std::pow(2, 4.0 / 7) / std::pow(1.001, 0.2), 1e-12);
  ASSERT_TRUE(ratio.interval);
  EXPECT_LT(ratio.interval->low, ratio.of_means);
  EXPECT_GT(ratio.interval->high, ratio.of_means);
}

// Uneven counts and variances: logarithms 0, 1, 2 (mean 1, variance of it 1/3, 2 degrees) and
// 2, 2, 4, 4 (3, 1/3, 3 degrees): degrees (2/3)^2 / ((1/9) / 2 + (1/9) / 3) = 4.8.
TEST(Statistics, DegreesOfFreedomAreSatterthwaites) {
  Values a, b;
  for (const double v : {0, 1, 2}) a.push_back(std::exp(v));
  for (const double v : {2, 2, 4, 4}) b.push_back(std::exp(v));
  const TimeRatio ratio = compare_times(a, b);
  ASSERT_TRUE(ratio.interval);
  const double half = (std::log(ratio.interval->high) - std::log(ratio.interval->low)) / 2;
  EXPECT_NEAR(half, student_quantile(0.975, 4.8) * std::sqrt(2.0 / 3), 1e-9);
}

TEST(Statistics, OneValueHasNoInterval) {
  EXPECT_FALSE(compare_times(Values{2}, Values{4, 4, 4}).interval);
  EXPECT_DOUBLE_EQ(compare_times(Values{2}, Values{4, 4, 4}).of_means, 2);
  const TimeRatio exact = compare_times(Values{2, 2}, Values{4, 4});
  ASSERT_TRUE(exact.interval);
  EXPECT_DOUBLE_EQ(exact.interval->low, 2);
  EXPECT_DOUBLE_EQ(exact.interval->high, 2);
}

TEST(Statistics, RatesAreOfTheAmountBySeconds) {
  const Spread rates = spread_of_rates(12, {2, 3, 6});
  EXPECT_DOUBLE_EQ(rates.median, 4);
  EXPECT_DOUBLE_EQ(rates.min, 2);
  EXPECT_DOUBLE_EQ(rates.max, 6);
}

}  // namespace
}  // namespace cputrain
