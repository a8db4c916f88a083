// The rates of a test, its end, and what remains of a loss without its noise.

#include "scaling/tune/rate_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace cputrain::tune {
namespace {

constexpr RateRange kSixDecades{1e-6, 1, 121};

TEST(RateRange, GrowsByTheSameFactor) {
  EXPECT_DOUBLE_EQ(kSixDecades.at(0), 1e-6);
  EXPECT_NEAR(kSixDecades.at(120), 1, 1e-12);
  EXPECT_NEAR(kSixDecades.at(60), 1e-3, 1e-12);
  EXPECT_NEAR(kSixDecades.at(20) / kSixDecades.at(0), 10, 1e-9);
  EXPECT_DOUBLE_EQ(kSixDecades.steps_per_decade(), 20);
}

TEST(Smooth, KeepsAStraightLineToItsEnds) {
  RateCurve curve{kSixDecades, {}};
  for (int i = 0; i < 121; ++i) curve.losses.push_back(2 - 0.3 * i / 20);
  curve.losses.resize(80);  // all above a quarter of the least
  const auto smoothed = smooth(curve);
  ASSERT_EQ(smoothed.size(), curve.losses.size());
  for (std::size_t i = 0; i < smoothed.size(); ++i) {
    EXPECT_NEAR(smoothed[i].loss, curve.losses[i], 1e-12);
    EXPECT_NEAR(smoothed[i].slope, -0.3, 1e-12);
    EXPECT_NEAR(smoothed[i].slope_error, 0, 1e-9);
  }
}

TEST(Smooth, KnowsTheErrorOfItsSlopes) {
  constexpr int kCurves = 400, kAt = 60;
  std::mt19937 dice(1);
  std::normal_distribution<double> noise(0, 0.1);
  double sum = 0, squares = 0, variances = 0;
  for (int c = 0; c < kCurves; ++c) {
    RateCurve curve{kSixDecades, {}};
    for (int i = 0; i < 121; ++i) curve.losses.push_back(2 + noise(dice));
    const SmoothLoss at = smooth(curve)[kAt];
    sum += at.slope;
    squares += at.slope * at.slope;
    variances += at.slope_error * at.slope_error;
  }
  const double deviation = std::sqrt(squares / kCurves - std::pow(sum / kCurves, 2));
  EXPECT_NEAR(std::sqrt(variances / kCurves) / deviation, 1, 0.15);
}

TEST(Smooth, IsNotBentByAnEndWithoutBounds) {
  RateCurve curve{kSixDecades, {}};
  for (int i = 0; i < 60; ++i) curve.losses.push_back(2);
  curve.losses.push_back(1e12);
  EXPECT_LE(smooth(curve).back().loss, kDiverged * 2);
}

/// A test of dogcat on photographs: it learns nothing, and the last two of 79 steps explode.
RateCurve exploding() {
  RateCurve curve{{1e-6, 1, 100}, {}, TestEnd::diverged, 0.0534};
  for (int i = 0; i < 72; ++i) curve.losses.push_back(0.694 + 0.006 * std::sin(2.3 * i));
  curve.losses.insert(curve.losses.end(), {0.694, 0.688, 0.704, 0.694, 0.689, 6.4, 382});
  return curve;
}

TEST(Smooth, LiesAmongTheLossesBeforeAnExplosion) {
  const RateCurve curve = exploding();
  const std::vector<SmoothLoss> smoothed = smooth(curve);
  ASSERT_EQ(smoothed.size(), curve.losses.size());
  for (std::size_t i = 0; i < 77; ++i) {
    EXPECT_NEAR(smoothed[i].loss, 0.694, 0.006) << i;
    EXPECT_NEAR(smoothed[i].slope, 0, 0.02) << i;
  }
  EXPECT_GT(smoothed[77].loss, 2);
  EXPECT_FALSE(advise(curve, smoothed));
}

TEST(Smooth, ARiseIsWhereTheLossesRise) {
  const RateCurve curve = exploding();
  EXPECT_NEAR(rises_from(curve, smooth(curve)).value(), 0.0464, 0.0001);
  RateCurve gentle = curve;  // the same end, over more steps
  gentle.losses.resize(70);
  for (const double loss : {0.71, 0.75, 0.92, 1.3, 3.0, 9.0, 60.0}) gentle.losses.push_back(loss);
  const double rate = rises_from(gentle, smooth(gentle)).value();
  EXPECT_GE(rate, gentle.range.at(60));
  EXPECT_LE(rate, gentle.range.at(72));
}

TEST(Smooth, ALossFarAboveIsNoBreakWhereLaterOnesAreNot) {
  RateCurve curve = exploding();
  curve.losses.resize(77);
  curve.losses[40] = 6;
  EXPECT_FALSE(rises_from(curve, smooth(curve)));
  EXPECT_NEAR(smooth(curve)[40].loss, 0.694, 0.006);
}

TEST(Smooth, KeepsAFallToNearlyNothing) {
  RateCurve curve{kSixDecades, {}};
  for (int i = 0; i < 121; ++i) curve.losses.push_back(0.7 * std::pow(0.9, i));
  const std::vector<SmoothLoss> smoothed = smooth(curve);
  EXPECT_NEAR(smoothed[10].loss, curve.losses[10], 0.05);
  EXPECT_LT(smoothed[20].slope, 0);
}

TEST(DivergenceWatch, IsSilentBelowTheFirstLoss) {
  DivergenceWatch watch;
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(watch.add(0.7 * std::pow(0.9, i)));
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(watch.add(0.5)) << i;
}

TEST(DivergenceWatch, EndsWhereTheRunningMeanIsManyTimesItsBest) {
  DivergenceWatch watch;
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(watch.add(1));
  // From 1 towards 10 the mean is 10 - 9 * 0.9^n, but for the bias of the start: above 4 from n
  // = 4.
  for (int n = 1; n <= 3; ++n) EXPECT_FALSE(watch.add(10)) << n;
  EXPECT_TRUE(watch.add(10));
}

TEST(DivergenceWatch, LetsALossFallAndComeBack) {
  DivergenceWatch watch;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(watch.add(2 - 0.01 * i));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(watch.add(2));
}

TEST(DivergenceWatch, EndsAtANumberThatIsNone) {
  EXPECT_TRUE(DivergenceWatch().add(std::nan("")));
  EXPECT_TRUE(DivergenceWatch().add(std::numeric_limits<double>::infinity()));
}

}  // namespace
}  // namespace cputrain::tune
