#include "data/batch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

namespace cputrain::data {
namespace {

TEST(EpochOrder, IsAPermutationThatHangsOnSeedAndEpoch) {
  auto order = epoch_order(1000, 7, 3);
  EXPECT_EQ(order, epoch_order(1000, 7, 3));
  EXPECT_NE(order, epoch_order(1000, 7, 4));
  EXPECT_NE(order, epoch_order(1000, 8, 3));
  std::ranges::sort(order);
  std::vector<std::uint32_t> all(1000);
  std::iota(all.begin(), all.end(), 0u);
  EXPECT_EQ(order, all);
  EXPECT_TRUE(epoch_order(0, 7, 3).empty());
}

// Each of 4! orders equally often: 2400 draws, 100 expected, standard deviation below 10.
TEST(EpochOrder, IsUniform) {
  std::map<std::vector<std::uint32_t>, int> seen;
  for (int epoch = 0; epoch < 2400; ++epoch) ++seen[epoch_order(4, 1, epoch)];
  EXPECT_EQ(seen.size(), 24u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 100, 50);
}

TEST(Share, IsEvenWithinOne) {
  for (const int ranks : {1, 2, 3, 7, 96}) {
    for (const std::size_t count : {0u, 1u, 5u, 100u, 128u, 1024u}) {
      std::size_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Range r = share(count, rank, ranks);
        EXPECT_EQ(r.begin, next);
        EXPECT_GE(r.size(), count / ranks);
        EXPECT_LE(r.size(), count / ranks + 1);
        next = r.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

// The paper's batches on 96 ranks.
TEST(BatchPlan, KnowsThePapersNumbers) {
  const BatchPlan plan(22500, 1024, 32, 0, 96);
  EXPECT_EQ(plan.steps(), 22u);
  EXPECT_EQ(plan.images(0), 1024u);
  EXPECT_EQ(plan.images(21), 996u);
  EXPECT_EQ(BatchPlan(22500, 128, 32, 0, 96).steps(), 176u);
  EXPECT_EQ(BatchPlan(22500, 128, 32, 0, 96).images(175), 100u);
}

TEST(BatchPlan, CoversEverySampleOnceAndTellsEverySize) {
  for (const auto& [samples, batch, micro] : std::vector<std::array<int, 3>>{
           {300, 30, 32}, {22, 5, 2}, {6, 2, 32}, {3, 10, 1}, {97, 96, 7}}) {
    for (const int ranks : {1, 2, 3, 7, 96}) {
      std::vector<int> used(static_cast<std::size_t>(samples));
      std::vector<BatchPlan> plans;
      for (int rank = 0; rank < ranks; ++rank)
        plans.emplace_back(samples, batch, micro, rank, ranks);
      for (const BatchPlan& plan : plans) {
        const auto sizes = plan.sizes();
        for (std::size_t step = 0; step < plan.steps(); ++step) {
          EXPECT_EQ(plan.micro_batches(step), plans[0].micro_batches(step));
          EXPECT_EQ(plan.last_images(step), plans[0].last_images(step));
          std::size_t mine = 0;
          for (int k = 0; k < plan.micro_batches(step); ++k) {
            const StridedRange piece = plan.piece(step, k);
            for (std::size_t i = 0; i < piece.size(); ++i) ++used[piece.at(i)];
            mine += piece.size();
            EXPECT_LE(piece.size(), static_cast<std::size_t>(micro));
            if (piece.size() > 0) {
              EXPECT_TRUE(std::ranges::find(sizes, static_cast<int>(piece.size())) != sizes.end());
            }
          }
          EXPECT_LE(mine, plan.images(step));
        }
      }
      EXPECT_TRUE(std::ranges::all_of(used, [](int n) { return n == 1; }))
          << samples << " samples, batch " << batch << ", " << ranks << " ranks";
    }
  }
}

/// Whatever shares are, and where gradients of batches are added up.
TEST(BatchPlan, KnowsTheLastMicroBatchOfAllRanks) {
  constexpr int kRanks = 3;
  for (const Sharding sharding : {Sharding::slices, Sharding::dealt, Sharding::strided,
                                  Sharding::shard_then_batch, Sharding::generator}) {
    for (const int accumulate : {1, 2}) {
      const PlanOptions options{.sharding = sharding, .accumulate = accumulate};
      const auto plan_of = [&](int rank) { return BatchPlan(47, 11, 2, rank, kRanks, options); };
      for (std::size_t step = 0; step < plan_of(0).steps(); ++step) {
        const auto last = plan_of(0).last_images(step);
        ASSERT_EQ(last.size(), std::size_t{kRanks});
        for (int rank = 0; rank < kRanks; ++rank) {
          const BatchPlan plan = plan_of(rank);
          EXPECT_EQ(plan.piece(step, plan.micro_batches(step) - 1).size(),
                    last[static_cast<std::size_t>(rank)]);
        }
      }
    }
  }
}

TEST(BatchPlan, ARankWithoutImagesStillHasAProgram) {
  EXPECT_EQ(BatchPlan(6, 2, 32, 0, 3).sizes(), std::vector{1});
  EXPECT_EQ(BatchPlan(0, 2, 32, 0, 1).sizes(), std::vector{1});
  EXPECT_EQ(BatchPlan(0, 2, 32, 0, 1).steps(), 0u);
}

}  // namespace
}  // namespace cputrain::data
