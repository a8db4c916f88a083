// The promise of the program: the curve does not depend on how many ranks computed it.

#include <gtest/gtest.h>

#include <cmath>

#include "comm/communicator.h"
#include "tests/loop/made_training.h"

namespace cputrain::loop {
namespace {

void expect_near(const std::vector<double>& a, const std::vector<double>& b,
                 const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], b[i], 1e-9 * std::abs(a[i])) << what << ", value " << i;
  }
}

class RanksAgree : public ::testing::TestWithParam<int> {};

// Batch 5 on 7 ranks leaves two of them without an image in every step; the last step has 2 images.
TEST_P(RanksAgree, OnLossesWeightsAndEvaluation) {
  for (const optim::UpdateRule& rule : std::vector<optim::UpdateRule>{
           optim::RmsProp{}, optim::Adam{}, optim::Sgd{.momentum = 0.9, .nesterov = true}}) {
    MadeOptions options;
    options.optimizer.rule = rule;
    const auto alone = comm::make_solo();
    const MadeResult one = train_made(*alone, options);
    ASSERT_EQ(one.recorder.steps.size(), 10u);
    const auto many = train_ranks(GetParam(), options);
    for (const auto& [rank, made] : many) {
      expect_near(losses(one), losses(made),
                  std::string(optim::rule_name(rule)) + ", rank " + std::to_string(rank));
      EXPECT_EQ(made.weights_hash, many.at(0).weights_hash);
      EXPECT_EQ(made.recorder.epochs[0].train.images, 22);
      EXPECT_EQ(made.recorder.epochs[0].validation->images, 5);
      EXPECT_EQ(made.recorder.epochs[1].train.correct, one.recorder.epochs[1].train.correct);
    }
  }
}

TEST_P(RanksAgree, OnEveryRecipe) {
  for (const auto& [name, options] : made_recipes()) {
    const MadeResult one = train_made(*comm::make_solo(), options);
    const auto many = train_ranks(GetParam(), options);
    for (const auto& [rank, made] : many) {
      EXPECT_EQ(made.weights_hash, many.at(0).weights_hash) << name;
      expect_near(losses(one), losses(made), name + ", rank " + std::to_string(rank));
      ASSERT_EQ(made.recorder.steps.size(), one.recorder.steps.size()) << name;
      for (std::size_t i = 0; i < made.recorder.steps.size(); ++i) {
        EXPECT_EQ(made.recorder.steps[i].learning_rate, one.recorder.steps[i].learning_rate);
        EXPECT_EQ(made.recorder.steps[i].tally.images, one.recorder.steps[i].tally.images) << name;
      }
    }
  }
}

/// The whole curve and the weights to the last bit, since the same algorithm adds up the same
/// numbers: arrays that the host cannot touch go there and back.
TEST_P(RanksAgree, WhereverTheArraysLie) {
  std::map<std::string, MadeOptions> list = made_recipes();
  list["top k"].compression = exchange::parse_compression("topk:0.3");
  list["PowerSGD"].compression = exchange::parse_compression("powersgd:2");
  std::size_t which = 0;
  for (auto& [name, options] : list) {
    const std::vector<std::string> algorithms{"ring", "rabenseifner", "tree", "mpi"};
    options.allreduce = comm::parse_allreduce(algorithms[which++ % algorithms.size()]);
    const auto here = train_ranks(GetParam(), options);
    options.locked = true;
    const auto elsewhere = train_ranks(GetParam(), options);
    for (const auto& [rank, made] : elsewhere) {
      EXPECT_EQ(losses(made), losses(here.at(rank))) << name << ", rank " << rank;
      EXPECT_EQ(made.weights, here.at(rank).weights) << name << ", rank " << rank;
    }
  }
}

// Ranks that draw the same images cannot make the curve of one that draws them all.
TEST(Generator, MakesAnotherCurveAndSeesLessOfTheData) {
  MadeOptions options;
  options.plan.sharding = data::Sharding::generator;
  options.batch = 4;
  const MadeResult one = train_made(*comm::make_solo(), options);
  EXPECT_EQ(one.recorder.epochs[0].train.images, 22);
  const auto two = train_ranks(2, options);
  EXPECT_EQ(two.at(0).recorder.epochs[0].steps, 5u);  // 11 local batches of 2, the half of them
  EXPECT_EQ(two.at(0).recorder.epochs[0].train.images, 20);
  EXPECT_GT(std::abs(two.at(0).recorder.steps[1].tally.mean_loss() -
                     one.recorder.steps[1].tally.mean_loss()),
            1e-3);
  // In one step both ranks see the same two images: twice the loss of the half.
  options.batch = 2;
  const MadeResult half = train_made(*comm::make_solo(), options);
  EXPECT_NEAR(two.at(0).recorder.steps[0].tally.loss, 2 * half.recorder.steps[0].tally.loss, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Ranks, RanksAgree, ::testing::Values(1, 2, 3, 7));

// Gradients of several batches are those of one batch as large, but for dropout's step.
TEST(Accumulation, IsALargerBatch) {
  MadeOptions options;
  options.dropout = 0;
  options.batch = 6;
  const MadeResult large = train_made(*comm::make_solo(), options);
  options.batch = 2;
  options.plan.accumulate = 3;
  const MadeResult several = train_made(*comm::make_solo(), options);
  ASSERT_EQ(several.recorder.steps.size(), 8u);
  expect_near(losses(large), losses(several), "three batches of 2");
}

TEST(MicroBatches, DoNotChangeTheCurve) {
  const auto alone = comm::make_solo();
  MadeOptions options;
  const MadeResult two = train_made(*alone, options);
  options.micro_batch = 1;
  expect_near(losses(two), losses(train_made(*alone, options)), "micro-batch 1");
}

}  // namespace
}  // namespace cputrain::loop
