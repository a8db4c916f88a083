// How ranks share the samples, against the lists of the post on training with Horovod (elements
// 1..100, two or three shards), and every sample once an epoch where that is promised.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "data/batch_plan.h"

namespace cputrain::data {
namespace {

using List = std::vector<std::uint32_t>;

/// The elements that a rank sees in each batch of an epoch, where `order` is the epoch's.
std::vector<List> batches_of(const BatchPlan& plan, const List& order) {
  std::vector<List> batches;
  for (std::size_t step = 0; step < plan.steps(); ++step) {
    List batch;
    for (int k = 0; k < plan.micro_batches(step); ++k) {
      const StridedRange piece = plan.piece(step, k);
      for (std::size_t i = 0; i < piece.size(); ++i) batch.push_back(order[piece.at(i)]);
    }
    batches.push_back(batch);
  }
  return batches;
}

List one_to(std::uint32_t n) {
  List list(n);
  std::iota(list.begin(), list.end(), 1u);
  return list;
}

BatchPlan plan_of(Sharding sharding, std::size_t samples, std::size_t batch, int rank, int ranks) {
  return {samples, batch, 3, rank, ranks, {.sharding = sharding}};
}

TEST(Sharding, ShardThenBatchIsTheListOfThePost) {
  const auto first = batches_of(plan_of(Sharding::shard_then_batch, 100, 8, 0, 2), one_to(100));
  const auto second = batches_of(plan_of(Sharding::shard_then_batch, 100, 8, 1, 2), one_to(100));
  EXPECT_EQ(first[0], (List{1, 3, 5, 7}));
  EXPECT_EQ(first[1], (List{9, 11, 13, 15}));
  EXPECT_EQ(second[0], (List{2, 4, 6, 8}));
  // 50 elements a rank in batches of 4: 13 batches, the last with 2.
  EXPECT_EQ(first.size(), 13u);
  EXPECT_EQ(first.back(), (List{97, 99}));
  for (const List& batch : first) {
    EXPECT_TRUE(std::ranges::all_of(batch, [](auto n) { return n % 2 == 1; })) << "one kind only";
  }
}

TEST(Sharding, StridedIsTheListOfThePost) {
  const List shuffled{63, 74, 22, 26, 36, 14, 34, 94, 60, 42, 56, 17, 65, 1, 12, 51};
  const auto first = batches_of(plan_of(Sharding::strided, 16, 8, 0, 2), shuffled);
  const auto second = batches_of(plan_of(Sharding::strided, 16, 8, 1, 2), shuffled);
  EXPECT_EQ(first, (std::vector<List>{{63, 22, 36, 34}, {60, 56, 65, 12}}));
  EXPECT_EQ(second, (std::vector<List>{{74, 26, 14, 94}, {42, 17, 1, 51}}));
}

TEST(Sharding, ThreeShardsTakeEveryThird) {
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    List all;
    for (const List& batch :
         batches_of(plan_of(Sharding::strided, 100, 8, static_cast<int>(rank), 3), one_to(100))) {
      all.insert(all.end(), batch.begin(), batch.end());
    }
    List expected;
    for (std::uint32_t n = rank + 1; n <= 100; n += 3) expected.push_back(n);
    EXPECT_EQ(all, expected);  // although 3 does not divide the batch
  }
}

// The post calls the parts of its generators disjoint; with one seed on all ranks they are the
// same.
TEST(Sharding, GeneratorsDrawTheSameSamplesOnAllRanks) {
  const List order = one_to(100);
  const auto first = batches_of(plan_of(Sharding::generator, 100, 8, 0, 2), order);
  const auto second = batches_of(plan_of(Sharding::generator, 100, 8, 1, 2), order);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.size(), 12u);  // of the 25 local batches of 4, the half, rounded down
  EXPECT_EQ(first.back(), (List{45, 46, 47, 48}));  // and the rest of the data is never seen
  EXPECT_EQ(plan_of(Sharding::generator, 100, 8, 0, 2).images(0), 8u);
  // Alone it is the serial program.
  EXPECT_EQ(batches_of(plan_of(Sharding::generator, 100, 8, 0, 1), order),
            batches_of(plan_of(Sharding::slices, 100, 8, 0, 1), order));
  EXPECT_EQ(plan_of(Sharding::generator, 10, 64, 0, 2).steps(), 0u);
}

/// Samples of every step of an epoch over all ranks, sorted; checks counts and sizes on the way.
std::vector<List> steps_of(std::size_t samples, std::size_t batch, int micro, int ranks, int epoch,
                           const PlanOptions& options) {
  List order(samples);
  std::iota(order.begin(), order.end(), 0u);
  std::vector<List> steps;
  std::vector<int> micro_batches;
  for (int rank = 0; rank < ranks; ++rank) {
    const BatchPlan whole(samples, batch, micro, rank, ranks, options);
    const BatchPlan plan = whole.in_epoch(epoch);
    const auto sizes = whole.sizes();
    steps.resize(plan.steps());
    micro_batches.resize(plan.steps(), plan.steps() > 0 ? plan.micro_batches(0) : 0);
    for (std::size_t step = 0; step < plan.steps(); ++step) {
      if (rank == 0) micro_batches[step] = plan.micro_batches(step);
      EXPECT_EQ(plan.micro_batches(step), micro_batches[step]) << "ranks must stay in step";
      for (int k = 0; k < plan.micro_batches(step); ++k) {
        const StridedRange piece = plan.piece(step, k);
        EXPECT_LE(piece.size(), static_cast<std::size_t>(micro));
        EXPECT_TRUE(piece.size() == 0 || std::ranges::count(sizes, static_cast<int>(piece.size())))
            << "no program for " << piece.size();
        for (std::size_t i = 0; i < piece.size(); ++i) {
          steps[step].push_back(order[piece.at(i)]);
        }
      }
    }
    if (rank + 1 < ranks) continue;
    for (std::size_t step = 0; step < plan.steps(); ++step) {
      EXPECT_EQ(plan.images(step), steps[step].size());
    }
  }
  for (List& step : steps) std::ranges::sort(step);
  return steps;
}

/// Micro-batch k of rank r is number k * ranks + r of the batch, whatever the ranks.
TEST(Sharding, DealtMicroBatchesComeInTheOrderOfTheBatch) {
  for (const int ranks : {1, 2, 3, 7, 96}) {
    List order;
    const BatchPlan first(47, 20, 3, 0, ranks, {.sharding = Sharding::dealt});
    for (std::size_t step = 0; step < first.steps(); ++step) {
      for (int k = 0; k < first.micro_batches(step); ++k) {
        for (int rank = 0; rank < ranks; ++rank) {
          const BatchPlan plan(47, 20, 3, rank, ranks, {.sharding = Sharding::dealt});
          const StridedRange piece = plan.piece(step, k);
          for (std::size_t i = 0; i < piece.size(); ++i) {
            order.push_back(static_cast<std::uint32_t>(piece.at(i)));
          }
        }
      }
    }
    List expected(47);
    std::iota(expected.begin(), expected.end(), 0u);
    EXPECT_EQ(order, expected) << ranks << " ranks";
  }
}

class EpochIsTheDataSet : public ::testing::TestWithParam<int> {};

TEST_P(EpochIsTheDataSet, AtAwkwardBatches) {
  const int ranks = GetParam();
  for (const auto& [samples, batch, micro] : std::vector<std::array<int, 3>>{
           {300, 30, 32}, {22, 5, 2}, {6, 2, 32}, {3, 10, 1}, {97, 96, 7}, {1000, 128, 32}}) {
    const auto n = static_cast<std::size_t>(samples), b = static_cast<std::size_t>(batch);
    const auto slices = steps_of(n, b, micro, ranks, 0, {});
    List all;
    for (const List& step : slices) all.insert(all.end(), step.begin(), step.end());
    EXPECT_EQ(all.size(), n);
    EXPECT_EQ(std::set<std::uint32_t>(all.begin(), all.end()).size(), n);
    // A step has the same samples however they are shared, so the curve is the same, too.
    EXPECT_EQ(steps_of(n, b, micro, ranks, 0, {.sharding = Sharding::strided}), slices)
        << samples << " samples, batch " << batch;
    EXPECT_EQ(steps_of(n, b, micro, ranks, 0, {.sharding = Sharding::shard_then_batch}), slices);
    EXPECT_EQ(steps_of(n, b, micro, ranks, 0, {.sharding = Sharding::dealt}), slices);
  }
}

TEST_P(EpochIsTheDataSet, WithAccumulationAndGrowingBatches) {
  const int ranks = GetParam();
  for (const Sharding sharding : {Sharding::slices, Sharding::strided, Sharding::dealt}) {
    const PlanOptions options{.sharding = sharding, .accumulate = 3, .growth = {{2, 2}, {5, 4}}};
    for (const auto& [epoch, images] : {std::pair{0, 15u}, {1, 15u}, {2, 30u}, {5, 60u}}) {
      const auto steps = steps_of(100, 5, 4, ranks, epoch, options);
      ASSERT_EQ(steps.size(), (100 + images - 1) / images);
      List all;
      for (std::size_t step = 0; step < steps.size(); ++step) {
        EXPECT_EQ(steps[step].size(), step + 1 < steps.size() ? images : 100 - step * images);
        all.insert(all.end(), steps[step].begin(), steps[step].end());
      }
      EXPECT_EQ(std::set<std::uint32_t>(all.begin(), all.end()).size(), 100u);
    }
  }
}

TEST_P(EpochIsTheDataSet, ButForWhatFillsNoWholeStep) {
  const int ranks = GetParam();
  EXPECT_EQ(steps_of(100, 8, 3, ranks, 0, {.drop_last = true}).size(), 12u);
  const auto steps = steps_of(100, 8, 3, ranks, 0, {.drop_last = true, .accumulate = 5});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].size(), 40u);
  EXPECT_TRUE(steps_of(7, 8, 3, ranks, 0, {.drop_last = true}).empty());
  EXPECT_EQ(steps_of(16, 8, 3, ranks, 0, {.drop_last = true}).size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Ranks, EpochIsTheDataSet, ::testing::Values(1, 2, 3, 7, 96));

// Each batch of a step is shared on its own, so that a rank never holds more than its share of one.
TEST(Accumulation, SharesEachBatch) {
  const BatchPlan plan(64, 8, 100, 1, 2, {.accumulate = 4});
  ASSERT_EQ(plan.steps(), 2u);
  EXPECT_EQ(plan.micro_batches(0), 4);
  EXPECT_EQ(plan.piece(1, 2).begin, 32u + 16 + 4);
  EXPECT_EQ(plan.piece(1, 2).count, 4u);
  EXPECT_EQ(plan.sizes(), (std::vector<int>{4}));
}

TEST(TrainingEpochs, CountFractionsOfGrowingEpochs) {
  const BatchPlan plan(100, 10, 8, 0, 1, {.growth = {{1, 2}, {3, 5}}});  // 10, 5, 5, 2, 2, ...
  EXPECT_EQ(training_epochs(plan, 7, {}), 7);
  EXPECT_EQ(training_epochs(plan, 7, 5u), 0.5);
  EXPECT_EQ(training_epochs(plan, 7, 10u), 1);
  EXPECT_EQ(training_epochs(plan, 7, 18u), 2 + 3.0 / 5);
  EXPECT_EQ(training_epochs(plan, 7, 25u), 3 + 5.0 / 2);
  EXPECT_EQ(training_epochs(plan, 7, 1'000'000'000'000u), 3 + (1e12 - 20) / 2);
}

}  // namespace
}  // namespace cputrain::data
