// The promise of the program: the curve does not depend on how many ranks computed it.

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "backends/threads/threads_communicator.h"
#include "comm/solo.h"
#include "train/made_training.h"

namespace cputrain {
namespace {

std::vector<double> losses(const MadeResult& made) {
  std::vector<double> list;
  for (const StepRecord& step : made.recorder.steps) list.push_back(step.tally.mean_loss());
  for (const EpochRecord& epoch : made.recorder.epochs) {
    list.push_back(epoch.train.mean_loss());
    if (epoch.validation) list.push_back(epoch.validation->mean_loss());
  }
  return list;
}

/// Every rank's training with `size` ranks as threads.
std::map<int, MadeResult> train_ranks(int size, const MadeOptions& options) {
  std::map<int, MadeResult> results;
  std::mutex mutex;
  run_ranks(size, [&](Communicator& communicator) {
    MadeResult made = train_made(communicator, options);
    const std::lock_guard lock(mutex);
    results.emplace(communicator.rank(), std::move(made));
  });
  return results;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b,
                 const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], b[i], 1e-9 * std::abs(a[i])) << what << ", value " << i;
  }
}

class RanksAgree : public testing::TestWithParam<int> {};

// Batch 5 on 7 ranks leaves two of them without an image in every step; the last step has 2 images.
TEST_P(RanksAgree, OnLossesWeightsAndEvaluation) {
  for (const UpdateRule& rule :
       std::vector<UpdateRule>{RmsProp{}, Adam{}, Sgd{.momentum = 0.9, .nesterov = true}}) {
    MadeOptions options;
    options.optimizer.rule = rule;
    const auto alone = make_solo();
    const MadeResult one = train_made(*alone, options);
    ASSERT_EQ(one.recorder.steps.size(), 10u);
    const auto many = train_ranks(GetParam(), options);
    for (const auto& [rank, made] : many) {
      expect_near(losses(one), losses(made),
                  std::string(rule_name(rule)) + ", rank " + std::to_string(rank));
      EXPECT_EQ(made.weights_hash, many.at(0).weights_hash);
      EXPECT_EQ(made.recorder.epochs[0].train.images, 22);
      EXPECT_EQ(made.recorder.epochs[0].validation->images, 5);
      EXPECT_EQ(made.recorder.epochs[1].train.correct, one.recorder.epochs[1].train.correct);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, RanksAgree, testing::Values(1, 2, 3, 7));

TEST(MicroBatches, DoNotChangeTheCurve) {
  const auto alone = make_solo();
  MadeOptions options;
  const MadeResult two = train_made(*alone, options);
  options.micro_batch = 1;
  expect_near(losses(two), losses(train_made(*alone, options)), "micro-batch 1");
}

}  // namespace
}  // namespace cputrain
