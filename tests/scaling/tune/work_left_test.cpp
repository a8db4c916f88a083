#include "scaling/tune/work_left.h"

#include <gtest/gtest.h>

namespace cputrain::tune {
namespace {

/// A second for 8 images, half a second to compile, and three steps that are not timed.
constexpr StepCost kCost{.image_seconds = 0.125, .placing_seconds = 0.5, .warm_steps = 3};

WorkLeft work(std::vector<LadderLeft> ladders, std::optional<int> rounds = {}) {
  WorkLeft left(std::move(ladders), rounds);
  left.measured(kCost);
  return left;
}

TEST(WorkLeft, AContestIsPlacedOnceAndHasTwiceItsRounds) {
  // Rounds of a step each: 1 s and 2 s, of which 3 fill 8 s. The second size: 0.5 + 3 x 2 s.
  EXPECT_DOUBLE_EQ(work({{"batch", {8, 16}}}).most_seconds(), 6.5 + 2 * 3 * 3);
  // One round of both, and up to one more.
  EXPECT_DOUBLE_EQ(work({{"batch", {8, 16}}}, 1).most_seconds(), 6.5 + 2 * 3);
}

TEST(WorkLeft, AShortStepFillsAQuarterOfASecond) {
  // A step of 0.125 s: two a round, nine rounds, none of them twice since nothing is compared.
  EXPECT_DOUBLE_EQ(work({{"batch", {1}}}).most_seconds(), 9 * 0.25);
}

TEST(WorkLeft, ALaterLadderPlacesItsFirstSizeTwice) {
  WorkLeft left = work({{"micro-batch", {8, 8}}, {"batch", {16}}}, 1);
  const double micro = 3.5 + 2 * 2, batch = 2 * 6.5 + 2;
  EXPECT_DOUBLE_EQ(left.most_seconds(), micro + batch);
  EXPECT_EQ(left.place_text(), "[1/3] ");
  left.tried();
  EXPECT_EQ(left.place_text(), "[2/3] ");
  EXPECT_DOUBLE_EQ(left.most_seconds(), batch);
  left.climbed();
  left.tried();
  EXPECT_EQ(left.place_text(), "[3/3] ");
  EXPECT_EQ(left.left_text(), "");
}

TEST(WorkLeft, ALadderThatEndsEarlyTakesNoMore) {
  WorkLeft left = work({{"micro-batch", {8, 8, 8, 8}}, {"batch", {16, 32}}});
  left.tried();
  left.climbed();
  EXPECT_EQ(left.place_text(), "[5/6] ");
}

TEST(WorkLeft, ATestOfRatesDecodesAndSteps) {
  WorkLeft left = work({});
  left.then_rates(100, 16, 30);
  EXPECT_DOUBLE_EQ(left.most_seconds(), 0.5 + 30 + 100 * 2);
  EXPECT_EQ(left.left_text(), " - at most 4 min left");
}

TEST(WorkLeft, ThePlanNamesWhatIsTried) {
  WorkLeft left = work({{"micro-batch", {8, 8, 8}}, {"batch", {16}}}, 1);
  left.then_rates(100, 16, 0);
  EXPECT_EQ(left.plan_text(),
            "Tuning: up to 3 sizes of --micro-batch, then 1 size of --batch, then up to 100 steps "
            "with growing learning rates: at most about 4 min, by the first steps (8 images/s); "
            "longer where other work disturbs them");
}

TEST(WorkLeft, TimesAreRoundedUp) {
  EXPECT_EQ(most_text(0.2), "1 s");
  EXPECT_EQ(most_text(61), "61 s");
  EXPECT_EQ(most_text(121), "3 min");
  EXPECT_EQ(most_text(2 * 3600 - 1), "2.0 h");
}

}  // namespace
}  // namespace cputrain::tune
