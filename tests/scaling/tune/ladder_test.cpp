// Which size a ladder advises over the usual one, on made-up gains.

#include "scaling/tune/findings.h"

#include <gtest/gtest.h>

namespace cputrain::tune {
namespace {

/// A size that was compared with another.
struct Tried {
  int value, against;
  double low, median, high;
};

Ladder ladder_of(int first, const std::vector<Tried>& sizes, int best, int usual) {
  Ladder ladder{.flag = "batch", .rungs = {}, .climb = {best, ClimbEnd::flat}, .usual = usual};
  ladder.rungs.push_back({.value = first, .images_per_second = 100});
  for (const Tried& size : sizes) {
    ladder.rungs.push_back(
        {.value = size.value,
         .images_per_second = ladder.find(size.against)->images_per_second * (1 + size.median),
         .against = size.against,
         .gain = Gain{size.median, {size.low, size.high}, 0.95, 7}});
  }
  return ladder;
}

TEST(Ladder, AdvisesWhatSurelyPaysAgainstTheUsualSize) {
  EXPECT_EQ(ladder_of(4, {{8, 4, 0.02, 0.05, 0.08}}, 8, 4).advised(), 8);
  EXPECT_EQ(ladder_of(4, {{8, 4, -0.01, 0.05, 0.08}}, 8, 4).advised(), std::nullopt);
  EXPECT_EQ(ladder_of(4, {{8, 4, 0.01, 0.02, 0.08}}, 8, 4).advised(), std::nullopt);
}

TEST(Ladder, AdvisesNothingByAFewRounds) {
  Ladder ladder = ladder_of(4, {{8, 4, 0.05, 0.05, 0.05}}, 8, 4);
  ladder.rungs.back().gain->confidence = 0.75;
  EXPECT_EQ(ladder.advised(), std::nullopt);
}

TEST(Ladder, AdvisesNothingWhereTheUsualSizeIsBest) {
  EXPECT_EQ(ladder_of(4, {{8, 4, 0.02, 0.05, 0.08}}, 8, 8).advised(), std::nullopt);
}

TEST(Ladder, TurnsAComparisonWithASmallerSizeRound) {
  // The usual size was tried against the smaller one, and was surely slower.
  const Ladder slower = ladder_of(4, {{8, 4, -0.3, -0.2, -0.1}}, 4, 8);
  EXPECT_EQ(slower.advised(), 4);
  EXPECT_NEAR(slower.gain_over_usual()->median, 0.25, 1e-12);
  EXPECT_NEAR(slower.gain_over_usual()->interval.low, 1 / 0.9 - 1, 1e-12);
  EXPECT_NEAR(slower.gain_over_usual()->interval.high, 1 / 0.7 - 1, 1e-12);
  // Here it was slower within the noise.
  EXPECT_EQ(ladder_of(4, {{8, 4, -0.1, -0.05, 0.01}}, 4, 8).advised(), std::nullopt);
}

TEST(Ladder, ChainsComparisonsAndTheirIntervals) {
  const Ladder ladder =
      ladder_of(4, {{8, 4, 0.1, 0.2, 0.3}, {16, 8, 0.1, 0.2, 0.3}, {32, 16, 0, 0.01, 0.02}}, 16, 4);
  const Gain gain = *ladder.gain_over_usual();
  EXPECT_NEAR(gain.median, 0.44, 1e-12);
  EXPECT_NEAR(gain.interval.low, 0.21, 1e-12);
  EXPECT_NEAR(gain.interval.high, 0.69, 1e-12);
  EXPECT_NEAR(gain.confidence, 0.9, 1e-12);
  // It is what the table's speeds say.
  EXPECT_NEAR(ladder.best().images_per_second / ladder.find(4)->images_per_second, 1.44, 1e-12);
}

TEST(Ladder, LeavesOutWhatBothWereComparedWith) {
  // 8, the usual one, and 16 were compared with 4: what 4 was compared with is not asked.
  const Ladder ladder =
      ladder_of(2, {{4, 2, -9, 5, 9}, {8, 4, -0.1, 0, 0.1}, {16, 4, 0.2, 0.3, 0.4}}, 16, 8);
  const Gain gain = *ladder.gain_over_usual();
  EXPECT_NEAR(gain.median, 0.3, 1e-12);
  EXPECT_NEAR(gain.interval.low, 1.2 / 1.1 - 1, 1e-12);
  EXPECT_EQ(ladder.advised(), 16);
}

TEST(Ladder, SaysWhetherTheUsualSizeIsStillToBeCompared) {
  const std::vector<Tried> sizes{{32, 16, 0.1, 0.2, 0.3}};
  EXPECT_FALSE(ladder_of(16, sizes, 32, 24).can_advise());
  EXPECT_FALSE(ladder_of(16, sizes, 32, 24).gain_over_usual());
  EXPECT_EQ(ladder_of(16, sizes, 32, 24).advised(), std::nullopt);
  EXPECT_TRUE(ladder_of(16, sizes, 32, 16).can_advise());
  EXPECT_FALSE(ladder_of(16, sizes, 32, 64).can_advise());
  Ladder batch = ladder_of(16, sizes, 32, 64);
  batch.larger_alone = true;
  EXPECT_TRUE(batch.can_advise());
  EXPECT_EQ(batch.advised(), std::nullopt);
  batch.climb.end = ClimbEnd::memory;  // the usual one has not even room
  EXPECT_EQ(batch.advised(), 32);
}

TEST(Ladder, NamesTheLargestThatWasTried) {
  // The usual size comes last.
  EXPECT_EQ(ladder_of(16, {{32, 16, 0.1, 0.2, 0.3}, {8, 32, -0.2, -0.1, 0}}, 32, 8).largest(), 32);
}

TEST(LostTime, IsSaidWhereItIsMuch) {
  EXPECT_EQ(lost_text({}), "");
  EXPECT_EQ(lost_text({.cpu_wait = 0.05, .stolen = 0.01}), "");
  EXPECT_EQ(lost_text({.cpu_wait = 0.23}), "threads waited 23 % of their time for a CPU");
  EXPECT_EQ(lost_text({.cpu_wait = 0.23, .stolen = 0.08}),
            "threads waited 23 % of their time for a CPU, and 8 % of the CPU time went to others "
            "on the host");
  Ladder ladder = ladder_of(4, {{8, 4, 0.02, 0.05, 0.08}}, 8, 4);
  EXPECT_EQ(most_lost_text(ladder), "");
  ladder.rungs[0].lost.cpu_wait = 0.2;
  ladder.rungs[1].lost.cpu_wait = 0.4;
  ladder.crowded = true;
  EXPECT_EQ(most_lost_text(ladder),
            "most at 8: threads waited 40 % of their time for a CPU (more threads than CPUs take "
            "turns)");
}

}  // namespace
}  // namespace cputrain::tune
