// Which rung of a ladder pays, on made-up speeds.

#include "scaling/tune/ladder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace cputrain::tune {
namespace {

using Speeds = std::map<int, double>;  ///< of the rungs that have room

/// Exact figures.
Contest contest_of(const Speeds& speeds, std::vector<int>& tried) {
  return [&](int best, int next) -> std::optional<Gain> {
    tried.push_back(next);
    if (!speeds.contains(next)) return std::nullopt;
    const double gain = speeds.at(next) / speeds.at(best) - 1;
    return Gain{gain, {gain - 1e-6, gain + 1e-6}, 0.95, 5};
  };
}

struct Climbed {
  Climb climb;
  std::vector<int> tried;
};

Climbed climbed(std::vector<int> rungs, const Speeds& speeds) {
  Climbed result;
  result.climb = climb(rungs, contest_of(speeds, result.tried));
  return result;
}

TEST(Climb, SmallGainsAddUp) {
  // 64 is 2 % quicker than 32, and 128 is so than 64: together they pay.
  const Climbed c =
      climbed({8, 16, 32, 64, 128}, {{8, 100}, {16, 101}, {32, 110}, {64, 112.2}, {128, 114.4}});
  EXPECT_EQ(c.climb.best, 128);
  EXPECT_EQ(c.climb.end, ClimbEnd::top);
}

TEST(Climb, EndsAfterTwoRungsThatDoNotPay) {
  const Climbed c =
      climbed({4, 8, 16, 32, 64}, {{4, 100}, {8, 150}, {16, 154}, {32, 151}, {64, 300}});
  EXPECT_EQ(c.climb.best, 8);
  EXPECT_EQ(c.climb.end, ClimbEnd::flat);
  EXPECT_EQ(c.tried, (std::vector<int>{8, 16, 32}));
}

TEST(Climb, EndsWhereMemoryDoes) {
  const Climbed c = climbed({4, 8, 16, 32}, {{4, 100}, {8, 150}});
  EXPECT_EQ(c.climb.best, 8);
  EXPECT_EQ(c.climb.end, ClimbEnd::memory);
  EXPECT_EQ(c.tried, (std::vector<int>{8, 16}));
}

TEST(Climb, OfOneRungIsThatOne) {
  const Climbed c = climbed({4}, {});
  EXPECT_EQ(c.climb.best, 4);
  EXPECT_EQ(c.climb.end, ClimbEnd::top);
  EXPECT_TRUE(c.tried.empty());
}

TEST(Gain, IsThatOfRoundsSoDriftDoesNotCount) {
  const std::vector<double> other{10, 20, 40, 5, 80}, rates{11, 22, 44, 5.5, 88};
  const Gain gain = gain_of(rates, other);
  EXPECT_NEAR(gain.median, 0.1, 1e-12);
  EXPECT_NEAR(gain.interval.low, 0.1, 1e-12);
  EXPECT_NEAR(gain.interval.high, 0.1, 1e-12);
  EXPECT_EQ(gain.rounds, 5);
  EXPECT_NEAR(gain.confidence, 1 - 2 * std::pow(0.5, 5), 1e-12);
}

TEST(Gain, IsTurnedRoundAndChained) {
  const Gain quarter{0.25, {0, 1}, 0.95, 5};
  EXPECT_NEAR(inverse(quarter).median, -0.2, 1e-12);
  EXPECT_NEAR(inverse(quarter).interval.low, -0.5, 1e-12);
  EXPECT_NEAR(inverse(quarter).interval.high, 0, 1e-12);
  const Gain both = chained(quarter, {0.1, {-0.1, 0.2}, 0.94, 3});
  EXPECT_NEAR(both.median, 0.375, 1e-12);
  EXPECT_NEAR(both.interval.low, -0.1, 1e-12);
  EXPECT_NEAR(both.interval.high, 1.4, 1e-12);
  EXPECT_NEAR(both.confidence, 0.89, 1e-12);
  EXPECT_EQ(both.rounds, 3);
}

TEST(Gain, PaysWhereItIsLargeAndSure) {
  EXPECT_TRUE(pays({0.05, {0.01, 0.08}}));
  EXPECT_FALSE(pays({0.02, {0.01, 0.08}}));
  EXPECT_FALSE(pays({0.05, {-0.01, 0.08}}));
}

TEST(Gain, IsUnsureWhereMoreRoundsMightTell) {
  EXPECT_TRUE(is_unsure({0.05, {0.02, 0.08}, 0.95}));
  EXPECT_TRUE(is_unsure({0.05, {-0.01, 0.08}, 0.95}));
  EXPECT_FALSE(is_unsure({0.05, {0.04, 0.08}, 0.95}));
  EXPECT_TRUE(is_unsure({0.05, {0.04, 0.08}, 0.75}));  // three rounds
  EXPECT_FALSE(is_unsure({0.00, {-0.01, 0.02}}));
}

}  // namespace
}  // namespace cputrain::tune
