#include "core/stolen_time.h"

#include <gtest/gtest.h>

#include "cli/calm_rounds.h"

namespace cputrain {
namespace {

using Ticks = std::vector<CpuTicks>;

TEST(StolenTime, ReadsTheLinesOfSingleCpus) {
  const Ticks ticks = cpu_ticks(
      "cpu  10 20 30 40 50 60 70 80 90 100\n"
      "cpu0 1 2 3 4 5 6 7 8 9 10\n"
      "cpu11 100 0 50 700 20 1 2 30 0 0\n"
      "intr 5 6 7\n");
  EXPECT_EQ(ticks, (Ticks{{0, 1 + 2 + 3 + 6 + 7, 4 + 5, 8}, {11, 153, 720, 30}}));
}

TEST(StolenTime, SkipsWhatItCannotRead) {
  EXPECT_TRUE(cpu_ticks("").empty());
  EXPECT_TRUE(cpu_ticks("cpu\ncpux 1 2 3 4 5 6 7 8\ncpu0 1 2 3\nnothing").empty());
}

TEST(StolenTime, IsAPartOfTheTimeInWhichCpusHadWork) {
  const Ticks before{{0, 100, 50, 10}, {1, 200, 50, 20}};
  const Ticks after{{0, 190, 50, 20}, {1, 280, 50, 40}};
  EXPECT_DOUBLE_EQ(stolen_part(before, after, {0}), 0.1);
  EXPECT_DOUBLE_EQ(stolen_part(before, after, {1}), 0.2);
  EXPECT_DOUBLE_EQ(stolen_part(before, after, {}), 0.15);
  EXPECT_DOUBLE_EQ(stolen_part(before, after, {0, 1, 2}), 0.15);
  EXPECT_EQ(stolen_part(before, after, {2}), 0);
}

TEST(StolenTime, OfAnIdleCpuIsNobodysLoss) {
  const Ticks before{{0, 0, 0, 0}, {1, 0, 0, 0}};
  EXPECT_EQ(stolen_part(before, {{0, 100, 0, 0}, {1, 0, 100, 80}}, {}), 0);
  // A thread that moved: half of each CPU's time, so half of what each lost.
  EXPECT_DOUBLE_EQ(stolen_part(before, {{0, 50, 50, 100}, {1, 50, 50, 0}}, {}), 50.0 / 150);
}

TEST(StolenTime, OfThisMachineIsAPart) {
  StolenTime stolen({});
  const double part = stolen.lap();
  EXPECT_GE(part, 0);
  EXPECT_LE(part, 1);
}

TEST(CalmRounds, ReplaceDisturbedOnes) {
  CalmRounds rounds(3);
  for (const double stolen : {0.0, 0.5, 0.01, 0.03}) rounds.add(stolen);
  EXPECT_FALSE(rounds.enough());
  rounds.add(0.02);
  EXPECT_TRUE(rounds.enough());
  EXPECT_EQ(rounds.of({1, 2, 3, 4, 5}), (std::vector<double>{1, 3, 5}));
  EXPECT_EQ(rounds.measured(), 5U);
  EXPECT_EQ(rounds.counted(), 3U);
  EXPECT_EQ(rounds.left_out(), 2U);
  EXPECT_DOUBLE_EQ(rounds.stolen(), 0.01);
  EXPECT_DOUBLE_EQ(rounds.stolen_of_all(), 0.112);
}

TEST(CalmRounds, GiveUpAfterThreeTimesAsMany) {
  CalmRounds some(4);
  for (int i = 0; i < 12; ++i) {
    EXPECT_FALSE(some.enough());
    some.add(i < 3 ? 0.0 : 0.5);
  }
  EXPECT_TRUE(some.enough());
  EXPECT_EQ(some.counted(), 3U);  // enough for a median
}

TEST(CalmRounds, AllCountWhereCalmOnesAreRare) {
  CalmRounds rounds(4);
  for (int i = 0; i < 12; ++i) rounds.add(i < 2 ? 0.0 : 0.6);
  EXPECT_EQ(rounds.counted(), 12U);
  EXPECT_EQ(rounds.left_out(), 0U);
  EXPECT_DOUBLE_EQ(rounds.stolen(), 0.5);

  CalmRounds one(1);  // --repeat 1: one calm round is what was asked for
  one.add(0.3);
  one.add(0.0);
  EXPECT_TRUE(one.enough());
  EXPECT_EQ(one.counted(), 1U);
}

}  // namespace
}  // namespace cputrain
