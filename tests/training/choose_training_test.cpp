// What flags and a recipe decide, before any rank is known.
#include "training/request/choose_training.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "core/error.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::training {
namespace {

TEST(ChooseTraining, FollowsTheRecipe) {
  const TrainingSpec spec = choose_training({});
  EXPECT_EQ(spec.image, (Shape{256, 256, 3}));
  EXPECT_EQ(spec.batch, 128u);
  const auto* rule = std::get_if<optim::RmsProp>(&spec.optimizer.rule);
  ASSERT_NE(rule, nullptr);
  EXPECT_EQ(rule->rho, 0.9);
  EXPECT_EQ(rule->epsilon, 1e-7);
  EXPECT_EQ(spec.learning_rate.base, 0.001);
}

TEST(ChooseTraining, AnotherOptimizerBringsKerasDefaultRate) {
  TrainingFlags flags;
  flags.optimizer.rule = "sgd";
  EXPECT_EQ(choose_training(flags).learning_rate.base, 0.01);
  flags.lr = 0.5;
  EXPECT_EQ(choose_training(flags).learning_rate.base, 0.5);
}

TEST(ChooseTraining, WeightsBringTheRecipeOfFineTuning) {
  TrainingFlags flags;
  flags.model = "efficientnet-lite0";
  const TrainingSpec anew = choose_training(flags);
  flags.weights = "theirs.safetensors";
  const TrainingSpec all = choose_training(flags);
  EXPECT_TRUE(std::holds_alternative<optim::Adam>(all.optimizer.rule));
  EXPECT_EQ(all.learning_rate.base, 0.0001);
  EXPECT_EQ(all.learning_rate.schedule, optim::Schedule(optim::ConstantRate{}));
  EXPECT_EQ(all.batch, 64u);
  EXPECT_EQ(all.augment, anew.augment);
  flags.freeze = {"all-but-head"};
  const TrainingSpec head = choose_training(flags);
  EXPECT_EQ(head.learning_rate.base, 0.001);
  EXPECT_EQ(head.augment, data::Augment{});
  // A resume need not name them.
  flags.weights.clear();
  EXPECT_EQ(choose_training(flags).batch, anew.batch);
  flags.first_weights = "theirs.safetensors";
  EXPECT_EQ(choose_training(flags).learning_rate.base, 0.001);
}

TEST(ChooseTraining, OneLayerAtLeastIsTrained) {
  TrainingFlags flags;
  flags.freeze = {"*"};
  const std::string text =
      testing::refused(ExitCode::usage, [&] { build_graph(choose_training(flags), 2); });
  EXPECT_TRUE(text.starts_with("--freeze * leaves no layer to train")) << text;
}

TEST(ChooseTraining, FlagsGoBeforeTheRecipeOfFineTuning) {
  TrainingFlags flags;
  flags.weights = "theirs.safetensors";
  flags.optimizer.rule = "sgd";
  flags.batch = 7;
  flags.epochs = 3;
  const TrainingSpec spec = choose_training(flags);
  EXPECT_EQ(spec.learning_rate.base, 0.01);  // Keras' default of that rule
  EXPECT_EQ(spec.batch, 7u);
  EXPECT_EQ(spec.epochs, 3);
}

TEST(ChooseTraining, AugmentationIsTheRecipesUnlessAskedFor) {
  TrainingFlags flags;
  EXPECT_EQ(choose_training(flags).augment, data::Augment{});
  flags.model = "nature7";
  EXPECT_EQ(data::to_text(choose_training(flags).augment), "shear:0.2,zoom:0.2,flip");
  flags.augment = data::parse_augment("none");
  EXPECT_EQ(choose_training(flags).augment, data::Augment{});
}

TEST(ChooseTraining, RefusesFiguresThatTheRuleDoesNotHave) {
  const auto refused = [](
                           const optim::RuleChoice& optimizer,
                           const std::function<void(TrainingFlags&)>& change = [](auto&) {}) {
    TrainingFlags flags;
    flags.optimizer = optimizer;
    change(flags);
    return !testing::refusal_of(ExitCode::usage, [&] { choose_training(flags); }).empty();
  };
  EXPECT_TRUE(refused({"sgd", {{"rho", 0.5}}}));
  EXPECT_TRUE(refused({"sgd", {{"epsilon", 0.5}}}));
  EXPECT_TRUE(refused({"adam", {{"momentum", 0.5}}}));
  EXPECT_TRUE(refused({"adam", {{"centered", 1}}}));
  EXPECT_TRUE(refused({"rmsprop", {{"nesterov", 1}}}));
  EXPECT_TRUE(refused({"sgd", {{"nesterov", 1}}}));  // no momentum to look along
  EXPECT_FALSE(refused({"sgd", {{"nesterov", 1}, {"momentum", 0.9}}}));
  EXPECT_FALSE(refused({"sgd", {{"nesterov", 0}}}));
  EXPECT_FALSE(refused({"rmsprop", {{"momentum", 0.5}}}));
  EXPECT_FALSE(refused({"", {{"momentum", 0.5}}}));  // of dogcat's rmsprop
  EXPECT_TRUE(refused({"sgd", {{"trust", 0.5}}}));
  EXPECT_TRUE(refused({"lamb", {{"momentum", 0.5}}}));
  EXPECT_TRUE(refused({"lars", {{"epsilon", 0.5}}}));
  EXPECT_FALSE(refused({"lars", {{"trust", 0.5}, {"momentum", 0.5}}}));
  const auto correct = [](TrainingFlags& c) { c.momentum_correction = true; };
  EXPECT_TRUE(refused({"sgd"}, correct));
  EXPECT_TRUE(refused({"adam"}, correct));
  EXPECT_FALSE(refused({"lars"}, correct));
  EXPECT_FALSE(refused({"sgd", {{"momentum", 0.9}}}, correct));
  EXPECT_TRUE(refused({"sgd"}, [](TrainingFlags& c) { c.base_batch = 32; }));
  EXPECT_FALSE(refused({"sgd"}, [](TrainingFlags& c) { c.base_batch = 32, c.warmup_epochs = 1; }));
  EXPECT_TRUE(refused({"sgd"}, [](TrainingFlags& c) {
    c.shuffle = true, c.sharding = data::Sharding::shard_then_batch;
  }));
}

TrainingSpec fitted(const TrainingFlags& flags, int ranks) {
  TrainingSpec spec = choose_training(flags);
  fit_to_ranks(spec, ranks);
  return spec;
}

TEST(FitToRanks, ScalesByRanksOrByTheBatch) {
  TrainingFlags flags;
  EXPECT_FALSE(fitted(flags, 4).learning_rate.n);
  flags.lr_scale = optim::RateScale::linear;
  EXPECT_EQ(fitted(flags, 4).learning_rate.n, 4);
  flags.batch = 256;
  flags.base_batch = 64;
  EXPECT_EQ(fitted(flags, 3).learning_rate.n, 4);
  flags.accumulate = 2;
  EXPECT_EQ(fitted(flags, 3).learning_rate.n, 8);
}

TEST(FitToRanks, KeepsTheBatchOfARank) {
  TrainingFlags flags;
  flags.batch_per_rank = 10;
  EXPECT_EQ(fitted(flags, 7).batch, 70u);
  flags.base_batch = 35;
  flags.lr_scale = optim::RateScale::sqrt;
  EXPECT_EQ(fitted(flags, 7).learning_rate.n, 2);
}

TEST(ChooseTraining, SaysThatTheImageIsTooSmall) {
  TrainingFlags flags;
  flags.image_size = 8;
  const std::string text = testing::refused(ExitCode::usage, [&] { choose_training(flags); });
  EXPECT_NE(text.find("--image-size 8"), std::string::npos) << text;
}

/// The advice is the least size that fits: with it the training begins, with one less it does not.
TEST(ChooseTraining, SaysTheLeastSizeThatFits) {
  std::size_t small = 0;
  const testing::TemporaryFolder folder;
  const std::string file = (folder.path() / "mine.json").string();
  std::ofstream(file) << R"({"format": "cputrain model 1", "recipe": {"image_size": 8}, "layers":
      [{"type": "max_pool", "size": 5}, {"type": "flatten"}, {"type": "dense", "units": "classes"},
       {"type": "softmax"}]})";
  for (const std::string& model : {std::string("dogcat"), std::string("nature7"),
                                   std::string("vgg16"), std::string("resnet18"), file}) {
    TrainingFlags flags;
    flags.model = model;
    flags.image_size = 1;
    const std::string text = testing::refusal_of(ExitCode::usage, [&] { choose_training(flags); });
    if (text.empty()) continue;  // it takes every size
    ++small;
    constexpr std::string_view kAdvice = "use --image-size ";
    const std::size_t at = text.find(kAdvice);
    ASSERT_NE(at, std::string::npos) << text;
    flags.image_size = std::stoi(text.substr(at + kAdvice.size()));
    EXPECT_TRUE(text.ends_with(" or more")) << text;
    EXPECT_EQ(choose_training(flags).image.height, flags.image_size);
    flags.image_size = *flags.image_size - 1;
    testing::refused(ExitCode::usage, [&] { choose_training(flags); });
  }
  EXPECT_GE(small, 3u);
}

}  // namespace
}  // namespace cputrain::training
