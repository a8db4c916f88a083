#include "cli/training_setup.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"

namespace cputrain {
namespace {

TEST(ChooseTraining, FollowsTheRecipe) {
  const TrainingChoices choices = choose_training({});
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
  EXPECT_FALSE(refused("rmsprop", [](Config& c) { c.momentum = 0.5; }));
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
