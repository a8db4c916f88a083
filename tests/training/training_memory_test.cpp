// What a training takes of memory, and what would fit: against closed forms.
#include "training/plan/training_memory.h"

#include <gtest/gtest.h>

namespace cputrain::training {
namespace {

/// Two nodes with two ranks and one; each rank needs 100 with state 10 and holds 7, each node 1000
/// in all.
TrainingMemory two_nodes(std::size_t room_a, std::size_t room_b) {
  const RankMemory rank{20, 20, 10, 47, 3, 7};
  return {{{"a", {0, 2}, room_a}, {"b", {1}, room_b}}, {rank, rank, rank}, {900, 100}};
}

TEST(TrainingMemory, ANodeNeedsItsRanksAndWhatTheyShareOnce) {
  const TrainingMemory memory = two_nodes(1200, 1100);
  EXPECT_EQ(memory.needed(memory.capacities[0]), 1200u);
  EXPECT_EQ(memory.needed(memory.capacities[1]), 1100u);
  EXPECT_EQ(memory.in_all(memory.capacities[0]), 1214u);  // with what they hold already
  EXPECT_EQ(memory.too_small(), nullptr);
  EXPECT_EQ(two_nodes(1199, 1100).too_small()->host, "a");
  EXPECT_EQ(two_nodes(1200, 1099).too_small()->host, "b");
}

/// A rank holds 7, and 5 of them came since the nodes said what they have.
TEST(TrainingMemory, WhatCameSinceIsNeededAndCountsOnce) {
  TrainingMemory memory = two_nodes(1209, 1105);
  for (RankMemory& rank : memory.ranks) rank.grown = 5;
  EXPECT_EQ(memory.needed(memory.capacities[0]), 1210u);
  EXPECT_EQ(memory.in_all(memory.capacities[0]), 1214u);
  EXPECT_EQ(memory.too_small()->host, "a");
  memory.capacities[0].available = 1315;
  EXPECT_EQ(ranks_that_fit(memory, memory.capacities[0]), 3);  // 315 / 105
  memory.capacities[0].available = 1314;
  EXPECT_EQ(ranks_that_fit(memory, memory.capacities[0]), 2);
}

TEST(TrainingMemory, WhatIsNotKnownIsNoReason) {
  TrainingMemory memory = two_nodes(1, 2);
  EXPECT_EQ(least_available(memory.capacities), 1u);
  memory.capacities[0].available.reset();
  EXPECT_EQ(memory.too_small()->host, "b");
  memory.capacities[1].available.reset();
  EXPECT_EQ(memory.too_small(), nullptr);
  EXPECT_EQ(least_available(memory.capacities), std::nullopt);
}

/// All but batches in flight, 3, and what the process holds, 7, lies in the backends' own memory.
TEST(TrainingMemory, WhatLiesInABackendsMemoryIsNoneOfTheNodes) {
  TrainingMemory memory = two_nodes(1006, 1003);
  for (RankMemory& rank : memory.ranks) rank.elsewhere = 97;
  memory.ranks[2].elsewhere = 96;
  EXPECT_EQ(memory.needed(memory.capacities[0]), 1007u);
  EXPECT_EQ(memory.needed(memory.capacities[1]), 1003u);
  EXPECT_EQ(memory.ranks[0].total(), 107u);
  EXPECT_EQ(memory.too_small()->host, "a");
  EXPECT_EQ(memory.elsewhere(memory.capacities[0]), 97u);
  EXPECT_EQ(memory.too_small_elsewhere(), nullptr);  // nobody knows how much there is
  memory.capacities[0].backend_available = memory.capacities[1].backend_available = 97;
  EXPECT_EQ(memory.too_small_elsewhere(), nullptr);
  memory.capacities[1].backend_available = 96;
  EXPECT_EQ(memory.too_small_elsewhere()->host, "b");
}

TEST(TrainingMemory, RanksThatFit) {
  TrainingMemory memory = two_nodes(1350, 999);
  EXPECT_EQ(ranks_that_fit(memory, memory.capacities[0]), 3);  // 350 / 100
  EXPECT_EQ(ranks_that_fit(memory, memory.capacities[1]), 0);
  memory.state_divided = true;
  EXPECT_EQ(ranks_that_fit(memory, memory.capacities[0]), 3);  // (350 - 20) / 90
  memory.capacities[0].available = 1290;
  EXPECT_EQ(ranks_that_fit(memory, memory.capacities[0]), 3);  // (290 - 20) / 90
  memory.state_divided = false;
  EXPECT_EQ(ranks_that_fit(memory, memory.capacities[0]), 2);  // 290 / 100
}

/// 30 where arrays lie and 5 of the host, of rank 0 alone.
TEST(TrainingMemory, WithoutCheckpointsThereIsNoCopy) {
  TrainingMemory memory = two_nodes(1234, 1100);
  memory.ranks[0].snapshot = 30;
  memory.ranks[0].snapshot_host = 5;
  EXPECT_EQ(memory.needed(memory.capacities[0]), 1235u);
  EXPECT_EQ(memory.too_small()->host, "a");
  EXPECT_EQ(memory.without_snapshot().too_small(), nullptr);
  EXPECT_EQ(memory.without_snapshot().needed(memory.capacities[0]), 1200u);
  EXPECT_EQ(ranks_that_fit(memory, memory.capacities[0]), 1);  // (234 - 35) / 100
  memory.ranks[0].written = 4;                                 // with or without them
  EXPECT_EQ(memory.needed(memory.capacities[0]), 1239u);
  EXPECT_EQ(memory.without_snapshot().needed(memory.capacities[0]), 1204u);
  memory.ranks[0].written = 0;
  memory.ranks[0].elsewhere = 97 + 30;
  EXPECT_EQ(memory.ranks[0].to_come(), 3u + 5);
  EXPECT_EQ(memory.ranks[0].without_snapshot().elsewhere, 97u);
  EXPECT_EQ(memory.ranks[0].without_snapshot().to_come(), 3u);
}

TEST(LargestFitting, LiesWithinAnEighthBelowTheBound) {
  for (const int tried : {1, 2, 7, 32, 1000}) {
    for (int bound = 0; bound < tried; ++bound) {
      const int found = largest_fitting(tried, [&](int n) { return n <= bound; });
      EXPECT_LE(found, bound);
      EXPECT_GE(found * 9 / 8 + 1, bound) << tried;
      EXPECT_GE(found, bound > 0 ? 1 : 0);
    }
  }
}

}  // namespace
}  // namespace cputrain::training
