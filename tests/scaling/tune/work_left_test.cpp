#include "scaling/tune/speed_ladder.h"

#include <gtest/gtest.h>

namespace cputrain::tune {
namespace {

/// A second for 8 images, half a second to compile, and three steps that are not timed.
constexpr double kImageSeconds = 0.125, kPlacingSeconds = 0.5;

WorkLeft work(std::vector<LadderLeft> ladders, std::optional<int> rounds = {},
              RatesLeft rates = {}) {
  WorkLeft left(std::move(ladders), rounds, rates);
  left.measured(kImageSeconds, kPlacingSeconds, 3);
  return left;
}

TEST(WorkLeft, AContestIsPlacedOnceAndHasUpToTwiceItsRounds) {
  // Rounds of a step each: 1 s and 2 s, of which 3 fill 8 s. The second size: 0.5 + 3 x 2 s.
  const WorkLeft usual = work({{"batch", {8, 16}}});
  EXPECT_DOUBLE_EQ(usual.most_seconds(), 6.5 + 2 * 3 * 3);
  EXPECT_DOUBLE_EQ(usual.likely_seconds(), 6.5 + 1.5 * 3 * 3);
  // One round of both, and up to one more.
  EXPECT_DOUBLE_EQ(work({{"batch", {8, 16}}}, 1).most_seconds(), 6.5 + 2 * 3);
}

TEST(WorkLeft, AShortStepFillsAQuarterOfASecond) {
  // A step of 0.125 s: two a round, nine rounds, none of them twice since nothing is compared.
  EXPECT_DOUBLE_EQ(work({{"batch", {1}}}).most_seconds(), 9 * 0.25);
  EXPECT_DOUBLE_EQ(work({{"batch", {1}}}).likely_seconds(), 9 * 0.25);
}

/// What a contest of two sizes of 8 images takes with one round, by how many times that is made.
double contest(double rounds) { return 3.5 + rounds * 2; }

TEST(WorkLeft, TwoSizesAreLikelyToPayAndBehindOneThatPaidOneMore) {
  WorkLeft left = work({{"micro-batch", std::vector<std::size_t>(9, 8)}}, 1);
  EXPECT_DOUBLE_EQ(left.most_seconds(), 8 * contest(2));
  EXPECT_DOUBLE_EQ(left.likely_seconds(), 4 * contest(1.5));
  left.tried(true);  // the first, which is compared with none
  EXPECT_DOUBLE_EQ(left.likely_seconds(), 4 * contest(1.5));
  left.tried(true);
  EXPECT_DOUBLE_EQ(left.likely_seconds(), 3 * contest(1.5));
  left.tried(false);
  EXPECT_DOUBLE_EQ(left.likely_seconds(), contest(1.5));
  left.tried(true);
  EXPECT_DOUBLE_EQ(left.likely_seconds(), 3 * contest(1.5));
  EXPECT_DOUBLE_EQ(left.most_seconds(), 5 * contest(2));
  left.tried(false);
  left.tried(false);
  EXPECT_EQ(left.left_text(), "");
}

TEST(WorkLeft, RoundsTellMoreOfSpeedThanTheFirstStep) {
  WorkLeft left = work({{"micro-batch", {8, 8}}}, 1);
  left.measured(2 * kImageSeconds);
  EXPECT_DOUBLE_EQ(left.most_seconds(), 0.5 + 3 * 2 + 2 * 4);
}

TEST(WorkLeft, PlacesCountInALadderOfTheirOwn) {
  WorkLeft left = work({{"micro-batch", {8, 8, 8, 8}}, {"batch", {16}}}, 1);
  const double batch = 2 * 6.5 + 2;  // its first size is placed twice
  left.tried(true);
  left.tried(false);
  EXPECT_EQ(left.place_text(), "[2 of up to 4] ");
  left.tried(false);
  EXPECT_EQ(left.place_text(), "[3 of up to 4] ");
  EXPECT_DOUBLE_EQ(left.likely_seconds(), batch);
  left.climbed();
  left.tried(true);
  EXPECT_EQ(left.place_text(), "[1 of 1] ");
  EXPECT_EQ(left.left_text(), "");
}

TEST(WorkLeft, TheUsualSizeIsComparedInTheEnd) {
  WorkLeft left = work({{"micro-batch", {8, 8, 8, 8}, 8}}, 1);
  EXPECT_DOUBLE_EQ(left.most_seconds(), 4 * contest(2));
  for (const bool paid : {true, false, false}) left.tried(paid);
  EXPECT_DOUBLE_EQ(left.likely_seconds(), contest(1.5));
  left.only_usual();
  left.tried(false);
  EXPECT_EQ(left.place_text(), "[4 of up to 5] ");
  EXPECT_EQ(left.left_text(), "");
}

TEST(WorkLeft, ATestOfRatesDecodesAndSteps) {
  // 1600 images of a step each, as usual, and 3200 with the largest batch; 2000 are there.
  const WorkLeft left = work({}, {},
                             {.steps = 100,
                              .likely_images = 16,
                              .most_images = 32,
                              .there = 2000,
                              .decoding_seconds = 0.01});
  EXPECT_DOUBLE_EQ(left.likely_seconds(), 0.5 + 16 + 200);
  EXPECT_DOUBLE_EQ(left.most_seconds(), 0.5 + 20 + 400);
  EXPECT_EQ(left.left_text(), " - about 4 min left");
}

TEST(WorkLeft, ImagesThatAreMetAgainCostNothingWhereFeaturesAreKept) {
  EXPECT_EQ(computed(100, 25, 1), 25);
  EXPECT_EQ(computed(100, 25, 0.5), 62.5);
  EXPECT_EQ(computed(100, 25, 0), 100);
  EXPECT_EQ(computed(100, 1000, 1), 100);
  const WorkLeft left = work(
      {}, {},
      {.steps = 100, .likely_images = 16, .most_images = 16, .there = 400, .kept_features = 1});
  EXPECT_DOUBLE_EQ(left.likely_seconds(), 0.5 + 50);
  EXPECT_DOUBLE_EQ(left.most_seconds(), 0.5 + 200);
}

TEST(WorkLeft, TimesAreRounded) {
  EXPECT_EQ(most_text(0.2), "1 s");
  EXPECT_EQ(most_text(61), "61 s");
  EXPECT_EQ(most_text(121), "3 min");
  EXPECT_EQ(most_text(2 * 3600 - 1), "2.0 h");
  EXPECT_EQ(about_text(0.2), "1 s");
  EXPECT_EQ(about_text(121), "2 min");
  EXPECT_EQ(about_text(151), "3 min");
}

TEST(WorkLeft, ThePlanNamesWhatIsTried) {
  const RatesLeft rates{.steps = 100, .likely_images = 16, .most_images = 16};
  EXPECT_EQ(work({{"micro-batch", {8, 8, 8}}, {"batch", {16}}}, 1, rates).plan_text(),
            "Tuning: up to 3 sizes of --micro-batch, then 1 size of --batch, then up to 100 steps "
            "with growing learning rates: about 4 min, at most 4 min, by the first steps; the line "
            "of each size says what is left");
}

TEST(WorkLeft, ABoundThatIsFarOffIsNotSaid) {
  const std::vector<std::size_t> sizes{16, 32, 64, 128, 256, 512, 1024};
  const std::string text = work({{"batch", sizes}}).plan_text();
  EXPECT_NE(text.find("up to 7 sizes of --batch: about "), std::string::npos) << text;
  EXPECT_EQ(text.find("at most"), std::string::npos) << text;
}

}  // namespace
}  // namespace cputrain::tune
