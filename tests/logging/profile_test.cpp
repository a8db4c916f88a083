#include "logging/reporters.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.h"

namespace cputrain::logging {
namespace {

TEST(Difference, TakesSecondsOffAndKeepsTheWords) {
  const std::vector<compute::LayerTime> before{{"a", "old", 1, 2, 3, 7}},
      now{{"a", "new", 5, 5, 5, 7}};
  const compute::LayerTime taken = compute::difference(now, before).front();
  EXPECT_EQ(taken.algorithm, "new");
  EXPECT_EQ(taken.forward, 4);
  EXPECT_EQ(taken.backward_data, 3);
  EXPECT_EQ(taken.backward_weights, 2);
  EXPECT_EQ(taken.seconds(), 9);
}

TEST(AlgorithmsText, NamesEachWayThatHasItsOwn) {
  compute::LayerTime layer{"a", "direct"};
  EXPECT_EQ(compute::algorithms_text(layer), "direct");
  EXPECT_EQ(compute::kLayerDirections[2].algorithm(layer), "direct");
  layer.weights_algorithm = "sparse";
  layer.data_algorithm = "winograd";
  EXPECT_EQ(compute::algorithms_text(layer), "direct, weights sparse, data winograd");
  EXPECT_EQ(compute::kLayerDirections[1].algorithm(layer), "winograd");
  EXPECT_EQ(compute::kLayerDirections[2].algorithm(layer), "sparse");
}

/// Steps of two seconds, of which a layer takes 0.5 forward and 0.25 each way back; evaluations
/// take it ten seconds.
TEST(Profile, LeavesEvaluationsOutAndSharesTheSteps) {
  const testing::TemporaryFolder folder;
  std::vector<compute::LayerTime> layers{{"conv2d", "direct"}, {"dense", "sgemm"}};
  const auto profile =
      profile_reporter([&] { return layers; }, nullptr, folder.path() / "profile.json");
  for (int epoch = 0; epoch < 2; ++epoch) {
    profile->begin_epoch({});
    for (int step = 0; step < 3; ++step) {
      layers[0].forward += 0.5;
      layers[0].backward_data += 0.25;
      layers[0].backward_weights += 0.25;
      layers[0].density = 0.125 * (epoch + 1);
      loop::StepRecord record;
      record.seconds = 2;
      profile->step(record);
    }
    layers[0].forward += 10;
    profile->epoch({});
  }
  profile->summary({});
  std::ifstream file(folder.path() / "profile.json");
  const auto json = nlohmann::json::parse(file);
  EXPECT_EQ(json["steps"], 6);
  EXPECT_EQ(json["seconds"], 12);
  EXPECT_EQ(json["all_else_seconds"], 6);
  const auto& first = json["layers"][0];
  EXPECT_EQ(first["name"], "conv2d");
  EXPECT_EQ(first["seconds"], 6);
  EXPECT_EQ(first["share"], 0.5);
  EXPECT_EQ(first["density"], 0.25);
  EXPECT_TRUE(first["gradient_density"].is_null());
  EXPECT_EQ(first["forward"]["seconds"], 3);
  EXPECT_EQ(first["forward"]["algorithm"], "direct");
  EXPECT_EQ(first["backward_data"]["seconds"], 1.5);
  EXPECT_FALSE(json["layers"][1].contains("forward"));
}

TEST(Profile, SaysNothingOfATrainingWithoutSteps) {
  const testing::TemporaryFolder folder;
  const auto profile = profile_reporter([] { return std::vector<compute::LayerTime>{}; }, nullptr,
                                        folder.path() / "profile.json");
  profile->begin_epoch({});
  profile->epoch({});
  profile->summary({});
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "profile.json"));
}

}  // namespace
}  // namespace cputrain::logging
