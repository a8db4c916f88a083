// What made-up curves say of learning rates.

#include "scaling/tune/rate_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace cputrain::tune {
namespace {

constexpr RateRange kRange{1e-6, 1, 121};

/// Falls from 2.3 to 0.8, steepest at `centre`, and explodes at `edge`; both are logarithms of
/// rates.
struct Made {
  double centre = -3.5, edge = -1, noise = 0;
  unsigned seed = 1;
};

RateCurve curve_of(const Made& made) {
  std::mt19937 dice(made.seed);
  std::normal_distribution<double> noise(0, 1);
  RateCurve curve{kRange, {}};
  DivergenceWatch watch;
  for (int i = 0; i < kRange.steps; ++i) {
    const double x = std::log10(kRange.at(i));
    const double fall = 1.5 / (1 + std::exp(-(x - made.centre) / 0.2));
    const double loss = 2.3 - fall + std::exp((x - made.edge) / 0.05) + made.noise * noise(dice);
    curve.losses.push_back(loss);
    if (!watch.add(loss)) continue;
    curve.end = TestEnd::diverged;
    curve.diverged_at = kRange.at(i);
    break;
  }
  return curve;
}

std::optional<RateAdvice> advice_of(const RateCurve& curve) { return advise(curve, smooth(curve)); }

TEST(RateAdvice, IsWhereTheLossFallsSteepest) {
  const RateCurve curve = curve_of({});
  const auto advice = advice_of(curve);
  ASSERT_TRUE(advice);
  EXPECT_NEAR(std::log10(advice->rate), -3.5, 0.051);  // a step is 0.05
  // The derivative of the fall there is 1.5 / 4 / 0.2; a line over a fifth of the range is flatter.
  EXPECT_LT(advice->steepest.slope, -0.9);
  EXPECT_GT(advice->steepest.slope, -1.5 / 4 / 0.2);
  EXPECT_LE(advice->from, advice->rate);
  EXPECT_GE(advice->to, advice->rate);
  EXPECT_FALSE(advice->capped);
}

TEST(RateAdvice, RangeEndsAtATenthOfWhereItDiverges) {
  const RateCurve curve = curve_of({});
  ASSERT_EQ(curve.end, TestEnd::diverged);
  EXPECT_NEAR(std::log10(curve.diverged_at), -0.9, 0.15);
  const auto advice = advice_of(curve);
  ASSERT_TRUE(advice);
  EXPECT_DOUBLE_EQ(advice->high, curve.diverged_at / 10);
  EXPECT_LT(advice->low, advice->rate);
}

TEST(RateAdvice, StaysBelowATenthOfWhereItDiverges) {
  const RateCurve curve = curve_of({.centre = -2, .edge = -1.4});
  const auto advice = advice_of(curve);
  ASSERT_TRUE(advice);
  EXPECT_TRUE(advice->capped);
  EXPECT_DOUBLE_EQ(advice->rate, curve.diverged_at / 10);
  EXPECT_LE(advice->low, advice->rate);
}

TEST(RateAdvice, WithoutDivergenceEndsAtATenthOfTheLeastLoss) {
  RateCurve curve{kRange, {}};  // a parabola, least at 0.01
  for (int i = 0; i < kRange.steps; ++i) {
    curve.losses.push_back(1 + std::pow(std::log10(kRange.at(i)) + 2, 2));
  }
  const auto advice = advice_of(curve);
  ASSERT_TRUE(advice);
  EXPECT_NEAR(advice->high, 1e-3, 1e-9);
}

TEST(RateAdvice, HoldsTheSteepestRateUnderNoise) {
  int held = 0;
  constexpr unsigned kCurves = 100;
  for (unsigned seed = 1; seed <= kCurves; ++seed) {
    const auto advice = advice_of(curve_of({.noise = 0.05, .seed = seed}));
    ASSERT_TRUE(advice) << seed;
    EXPECT_NEAR(std::log10(advice->rate), -3.5, 0.35) << seed;
    const double steepest = std::pow(10, -3.5);
    held += advice->from <= 1.06 * steepest && steepest <= 1.06 * advice->to;
  }
  EXPECT_GE(held, 90);
}

TEST(RateAdvice, SeesAFallBehindASpike) {
  RateCurve curve = curve_of({.noise = 0.02});
  curve.losses[46] += 1;  // a step of the fall
  const auto advice = advice_of(curve);
  ASSERT_TRUE(advice);
  EXPECT_NEAR(std::log10(advice->rate), -3.5, 0.35);
}

TEST(RateAdvice, OfNoiseAloneIsRare) {
  int advised = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    advised +=
        advice_of(curve_of({.centre = 20, .edge = 10, .noise = 0.1, .seed = seed})).has_value();
  }
  EXPECT_LE(advised, 5);
}

TEST(RateAdvice, NamesWhereALossRisesThatNeverFell) {
  RateCurve curve{kRange, {}};  // rises from 0.01 on
  for (int i = 0; i < kRange.steps; ++i)
    curve.losses.push_back(i < 80 ? 0.7 : 0.7 + 0.01 * (i - 80));
  EXPECT_FALSE(advice_of(curve));
  const auto rises = rises_from(curve, smooth(curve));
  ASSERT_TRUE(rises);
  EXPECT_NEAR(std::log10(*rises), -2, 0.65);  // lines look over 12 steps to either side
  EXPECT_LE(*rises, 0.0101);
  EXPECT_NE(no_advice_text(curve, smooth(curve)).find("It rises"), std::string::npos);
  curve.losses.assign(121, 0.7);
  EXPECT_FALSE(rises_from(curve, smooth(curve)));
}

TEST(RateAdvice, NeedsACurve) {
  RateCurve curve{kRange, {2.3, 2.2, 2.1}, TestEnd::not_finite, 2e-6};
  EXPECT_FALSE(advice_of(curve));
  EXPECT_NE(no_advice_text(curve, smooth(curve)).find("--min-lr"), std::string::npos);
  curve.losses.assign(121, 2.3);
  EXPECT_FALSE(advice_of(curve));
  EXPECT_NE(no_advice_text(curve, smooth(curve)).find("noise"), std::string::npos);
}

}  // namespace
}  // namespace cputrain::tune
