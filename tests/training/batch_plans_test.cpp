// How data is cut into steps, against counts made by hand.
#include "training/plan/training_plan.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace cputrain::training {
namespace {

TEST(BatchPlans, RefuseAnEpochWithoutSteps) {
  const auto refused = [](const data::PlanOptions& options, std::size_t samples, std::size_t batch,
                          int ranks) {
    TrainingSpec spec = choose_training({});
    spec.plan = options;
    try {
      check_steps(spec, {samples, batch, 8, 0, ranks, options});
      return false;
    } catch (const Error& error) {
      return error.code() == ExitCode::usage;
    }
  };
  EXPECT_FALSE(refused({}, 10, 100, 3));
  EXPECT_TRUE(refused({.drop_last = true}, 10, 100, 3));
  EXPECT_FALSE(refused({.drop_last = true}, 100, 100, 3));
  EXPECT_TRUE(refused({.drop_last = true, .growth = {{5, 2}}}, 100, 100, 3));
  EXPECT_TRUE(refused({.drop_last = true, .growth = {{5, 2}, {7, 1}}}, 100, 100, 3));
  EXPECT_FALSE(refused({.drop_last = true, .growth = {{10, 2}}}, 100, 100, 3));  // never comes
  EXPECT_TRUE(refused({.sharding = data::Sharding::generator}, 10, 100, 3));
}

TEST(BatchPlans, StepsOfATraining) {
  const data::BatchPlan plan(100, 32, 8, 0, 1);  // 4 steps an epoch
  EXPECT_EQ(all_steps(plan, 3, {}), 12u);
  EXPECT_EQ(all_steps(plan, 3, 7), 7u);
  data::PlanOptions growing;
  growing.growth = {{2, 2}};  // then 2 steps an epoch
  EXPECT_EQ(all_steps(data::BatchPlan(100, 32, 8, 0, 1, growing), 3, {}), 10u);
}

/// Rank r of n has [floor(count * r / n), floor(count * (r + 1) / n)) of a batch.
TEST(BatchPlans, ImagesOfEveryRank) {
  EXPECT_EQ(images_by_rank(data::BatchPlan(100, 10, 2, 0, 4)),
            (std::vector<std::size_t>{2, 3, 2, 3}));
  EXPECT_EQ(images_by_rank(data::BatchPlan(3, 10, 2, 1, 4)),
            (std::vector<std::size_t>{0, 1, 1, 1}));
  data::PlanOptions two;
  two.accumulate = 2;
  EXPECT_EQ(images_by_rank(data::BatchPlan(100, 4, 1, 0, 3, two)),
            (std::vector<std::size_t>{2, 2, 4}));
}

}  // namespace
}  // namespace cputrain::training
