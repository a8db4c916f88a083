#include "job/training_setup.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"

namespace cputrain {
namespace {

TEST(ChooseTraining, FollowsTheRecipe) {
  const TrainingSpec choices = choose_training({});
  EXPECT_EQ(choices.image, (Shape{256, 256, 3}));
  EXPECT_EQ(choices.batch, 128u);
  const auto* rule = std::get_if<RmsProp>(&choices.optimizer.rule);
  ASSERT_NE(rule, nullptr);
  EXPECT_EQ(rule->rho, 0.9);
  EXPECT_EQ(rule->epsilon, 1e-7);
  EXPECT_EQ(choices.learning_rate.base, 0.001);
}

TEST(ChooseTraining, AnotherOptimizerBringsKerasDefaultRate) {
  Config config;
  config.optimizer = "sgd";
  EXPECT_EQ(choose_training(config).learning_rate.base, 0.01);
  config.lr = 0.5;
  EXPECT_EQ(choose_training(config).learning_rate.base, 0.5);
}

TEST(ChooseTraining, AugmentationIsTheRecipesUnlessAskedFor) {
  Config config;
  EXPECT_EQ(choose_training(config).augment, Augment{});
  config.model = "nature7";
  EXPECT_EQ(to_text(choose_training(config).augment), "shear:0.2,zoom:0.2,flip");
  config.augment = parse_augment("none");
  EXPECT_EQ(choose_training(config).augment, Augment{});
}

TEST(ChooseTraining, RefusesFiguresThatTheRuleDoesNotHave) {
  const auto refused = [](const char* optimizer, const std::function<void(Config&)>& change) {
    Config config;
    config.optimizer = optimizer;
    change(config);
    try {
      choose_training(config);
      return false;
    } catch (const Error& error) {
      return error.code() == ExitCode::usage;
    }
  };
  EXPECT_TRUE(refused("sgd", [](Config& c) { c.rho = 0.5; }));
  EXPECT_TRUE(refused("sgd", [](Config& c) { c.epsilon = 0.5; }));
  EXPECT_TRUE(refused("adam", [](Config& c) { c.momentum = 0.5; }));
  EXPECT_TRUE(refused("adam", [](Config& c) { c.centered = true; }));
  EXPECT_TRUE(refused("rmsprop", [](Config& c) { c.nesterov = true; }));
  EXPECT_TRUE(refused("sgd", [](Config& c) { c.nesterov = true; }));  // no momentum to look along
  EXPECT_FALSE(refused("sgd", [](Config& c) { c.nesterov = true, c.momentum = 0.9; }));
  EXPECT_FALSE(refused("rmsprop", [](Config& c) { c.momentum = 0.5; }));
  EXPECT_TRUE(refused("sgd", [](Config& c) { c.trust = 0.5; }));
  EXPECT_TRUE(refused("lamb", [](Config& c) { c.momentum = 0.5; }));
  EXPECT_TRUE(refused("lars", [](Config& c) { c.epsilon = 0.5; }));
  EXPECT_FALSE(refused("lars", [](Config& c) { c.trust = c.momentum = 0.5; }));
  EXPECT_TRUE(refused("sgd", [](Config& c) { c.momentum_correction = true; }));
  EXPECT_TRUE(refused("adam", [](Config& c) { c.momentum_correction = true; }));
  EXPECT_FALSE(refused("lars", [](Config& c) { c.momentum_correction = true; }));
  EXPECT_TRUE(refused("sgd", [](Config& c) { c.base_batch = 32; }));
  EXPECT_FALSE(refused("sgd", [](Config& c) { c.base_batch = 32, c.warmup_epochs = 1; }));
  EXPECT_TRUE(
      refused("sgd", [](Config& c) { c.shuffle = true, c.sharding = Sharding::shard_then_batch; }));
}

TrainingSpec fitted(const Config& config, int ranks) {
  TrainingSpec choices = choose_training(config);
  fit_to_ranks(choices, config, ranks);
  return choices;
}

TEST(FitToRanks, ScalesByRanksOrByTheBatch) {
  Config config;
  EXPECT_FALSE(fitted(config, 4).learning_rate.n);
  config.lr_scale = RateScale::linear;
  EXPECT_EQ(fitted(config, 4).learning_rate.n, 4);
  config.batch = 256;
  config.base_batch = 64;
  EXPECT_EQ(fitted(config, 3).learning_rate.n, 4);
  config.accumulate = 2;
  EXPECT_EQ(fitted(config, 3).learning_rate.n, 8);
}

TEST(FitToRanks, KeepsTheBatchOfARank) {
  Config config;
  config.batch_per_rank = 10;
  EXPECT_EQ(fitted(config, 7).batch, 70u);
  config.base_batch = 35;
  config.lr_scale = RateScale::sqrt;
  EXPECT_EQ(fitted(config, 7).learning_rate.n, 2);
}

TEST(CheckSteps, RefusesAnEpochWithoutSteps) {
  const auto refused = [](const PlanOptions& options, std::size_t samples, std::size_t batch,
                          int ranks) {
    TrainingSpec choices = choose_training({});
    choices.plan = options;
    try {
      check_steps({}, choices, {samples, batch, 8, 0, ranks, options});
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
  EXPECT_TRUE(refused({.sharding = Sharding::generator}, 10, 100, 3));
}

TEST(ChooseTraining, SaysThatThePictureIsTooSmall) {
  Config config;
  config.image_size = 8;
  try {
    choose_training(config);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("--image-size 8"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace cputrain
