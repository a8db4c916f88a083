#include "core/statistics/calm_rounds.h"

#include <gtest/gtest.h>

namespace cputrain {
namespace {

using Values = std::vector<double>;

TEST(CalmRounds, ReplaceDisturbedOnes) {
  CalmRounds rounds(3);
  for (const double stolen : {0.0, 0.5, 0.01, 0.03}) rounds.add(stolen);
  EXPECT_FALSE(rounds.enough());
  rounds.add(CalmRounds::kCalm);
  EXPECT_TRUE(rounds.enough());
  EXPECT_FALSE(rounds.gave_up());
  EXPECT_EQ(rounds.counted_of({1, 2, 3, 4, 5}), (Values{1, 3, 5}));
  EXPECT_EQ(rounds.counted_of({1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5}),
            (Values{1, 1.5, 3, 3.5, 5, 5.5}));
  EXPECT_EQ(rounds.measured(), 5U);
  EXPECT_EQ(rounds.counted(), 3U);
  EXPECT_EQ(rounds.left_out(), 2U);
  EXPECT_DOUBLE_EQ(*rounds.stolen_of_counted(), 0.01);
  EXPECT_DOUBLE_EQ(*rounds.stolen_of_all(), 0.112);
}

TEST(CalmRounds, EndAfterThreeTimesAsMany) {
  CalmRounds rounds(4);
  for (int i = 0; i < 12; ++i) {
    EXPECT_FALSE(rounds.enough());
    rounds.add(i < 3 ? 0.0 : 0.5);
  }
  EXPECT_TRUE(rounds.enough());
  EXPECT_FALSE(rounds.gave_up());  // three are enough for a median
  EXPECT_EQ(rounds.counted(), 3U);
}

TEST(CalmRounds, AllCountWhereCalmOnesAreRare) {
  CalmRounds rounds(4);
  for (int i = 0; i < 12; ++i) rounds.add(i < 2 ? 0.0 : 0.6);
  EXPECT_TRUE(rounds.gave_up());
  EXPECT_EQ(rounds.counted(), 12U);
  EXPECT_EQ(rounds.left_out(), 0U);
  EXPECT_DOUBLE_EQ(*rounds.stolen_of_counted(), 0.5);
}

TEST(CalmRounds, AFewOfManyDoNotDecideAlone) {
  CalmRounds rounds(12);
  for (int i = 0; i < 100; ++i) rounds.add(i % 20 == 0 ? 0.0 : 0.5);
  EXPECT_TRUE(rounds.gave_up());  // five calm ones; three were enough of 36
  for (int i = 0; i < 4; ++i) rounds.add(0.0);
  EXPECT_FALSE(rounds.gave_up());
  EXPECT_EQ(rounds.counted(), 9U);
}

TEST(CalmRounds, AreNotWaitedForWhereThereAreNone) {
  CalmRounds rounds(4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(rounds.enough());
    rounds.add(0.5);
  }
  EXPECT_TRUE(rounds.enough());
  EXPECT_TRUE(rounds.gave_up());
  EXPECT_EQ(rounds.counted(), 4U);
}

TEST(CalmRounds, OneIsEnoughWhereOneWasWanted) {
  CalmRounds rounds(1);
  rounds.add(0.0);
  EXPECT_TRUE(rounds.enough());
  EXPECT_EQ(rounds.counted(), 1U);
}

TEST(CalmRounds, AllCountWhereNobodyKnows) {
  CalmRounds rounds(2);
  rounds.add(std::nullopt);
  EXPECT_FALSE(rounds.enough());
  rounds.add(std::nullopt);
  EXPECT_TRUE(rounds.enough());
  EXPECT_FALSE(rounds.gave_up());
  EXPECT_EQ(rounds.counted(), 2U);
  EXPECT_FALSE(rounds.stolen_of_all());
  EXPECT_FALSE(rounds.stolen_of_counted());
}

}  // namespace
}  // namespace cputrain
