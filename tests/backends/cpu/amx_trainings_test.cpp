// Whole networks whose convolutions go to emulated tiles.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/amx/availability.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/dnnl_primitives.h"
#include "backends/reference/reference_backend.h"
#include "tests/backends/trial.h"
#include "tests/checkpoint/rank_jobs.h"
#include "zoo/zoo.h"

namespace cputrain::training::amx_trainings_test {
namespace {

constexpr cpu::KernelChoice kEmulated{.tiles = cpu::KernelChoice::Tiles::emulated};
constexpr cpu::KernelChoice kFloats{.float_tiles = cpu::KernelChoice::Tiles::emulated};

template <class Base>
class WithEmulatedTiles : public Base {
 protected:
  void SetUp() override {
    if (!cpu::amx::find_kernels(kEmulated.tiles)) GTEST_SKIP() << "this CPU has no AVX2";
  }
};

/// The layers by what computes them, "forward/weights/data".
std::vector<std::string> methods_of(const compute::Program& program) {
  std::vector<std::string> found;
  for (const compute::LayerTime& layer : program.layer_times()) {
    if (!layer.name.starts_with("conv2d")) continue;
    found.push_back(layer.algorithm + "/" + layer.weights_algorithm + "/" + layer.data_algorithm);
  }
  return found;
}

class TilesOfDogcat : public WithEmulatedTiles<::testing::Test> {
 protected:
  static constexpr int kImages = 3;
  const Shape image_{48, 48, 3};
  const model::Graph graph_ = zoo::find_model("dogcat")->build(image_, 2);
  const testing::Samples images_ = testing::make_images(kImages, image_, 2);
};

/// The first layer's source has no gradient.
TEST_F(TilesOfDogcat, ComputeAllLayers) {
  const auto backend = cpu::make_cpu_backend(1, kEmulated);
  testing::Trial trial(*backend, graph_, {kImages});
  const auto methods = methods_of(trial.program());
  ASSERT_EQ(methods.size(), 4u);
  EXPECT_EQ(methods[0], "own AMX, emulated/own AMX, emulated/");
  for (std::size_t i = 1; i < methods.size(); ++i) {
    EXPECT_EQ(methods[i], "own AMX, emulated/own AMX, emulated/own AMX, emulated");
  }
}

using TilesOfLargeDense = WithEmulatedTiles<::testing::Test>;

/// 16 images are enough for tiles of the dense layer, too.
TEST_F(TilesOfLargeDense, AreTakenFromSixteenImagesOn) {
  model::Graph graph = testing::graph_of(
      Shape{16, 16, 3}, model::Convolution{.filters = 16, .kernel = 3}, model::Flatten{});
  graph.add(model::Dense{.units = 512}, "large");
  graph.add(model::Dense{.units = 16}, "small");
  graph.add(model::SoftmaxCrossEntropy{});
  const auto backend = cpu::make_cpu_backend(1, kEmulated);
  for (const int images : {8, 16}) {
    testing::Trial trial(*backend, graph, {images});
    for (const compute::LayerTime& layer : trial.program().layer_times()) {
      if (layer.name.starts_with("conv2d")) continue;
      const bool tiles = layer.algorithm.find("own AMX") != std::string::npos;
      EXPECT_EQ(tiles, layer.name == "large" && images == 16) << layer.name << layer.algorithm;
    }
  }
}

/// Where rounding makes two numbers of a window change places, gradients go another way.
TEST_F(TilesOfDogcat, LossesAndGradientsAreThoseOfDouble) {
  const auto backend = cpu::make_cpu_backend(2, kEmulated);
  const auto exact = reference::make_reference_backend(DType::f64);
  const auto made = testing::Trial(*backend, graph_, {kImages}).train(images_, {kImages});
  const auto expected = testing::Trial(*exact, graph_, {kImages}).train(images_, {kImages});
  EXPECT_NEAR(made.tally.loss, expected.tally.loss, 2e-3 * expected.tally.loss);
  for (std::size_t p = 0; p < made.gradients.size(); ++p) {
    EXPECT_LE(testing::relative_distance(made.gradients[p], expected.gradients[p]), 0.3) << p;
  }
}

TEST_F(TilesOfDogcat, TrainAsOnOneThreadUpToRounding) {
  const auto one = cpu::make_cpu_backend(1, kEmulated), three = cpu::make_cpu_backend(3, kEmulated);
  const auto made = testing::Trial(*three, graph_, {kImages}).train(images_, {kImages});
  const auto expected = testing::Trial(*one, graph_, {kImages}).train(images_, {kImages});
  EXPECT_EQ(made.probabilities, expected.probabilities);
  for (std::size_t p = 0; p < made.gradients.size(); ++p) {
    EXPECT_LE(testing::relative_distance(made.gradients[p], expected.gradients[p]), 1e-6) << p;
  }
}

/// With all other methods that this CPU has for blocks of 16, measured where there is enough work.
class TilesAmongOthers : public WithEmulatedTiles<::testing::Test> {
 protected:
  const std::unique_ptr<compute::Backend> backend_ = cpu::make_cpu_backend(
      1, {.winograd = true, .skip_zeros = true, .tiles = kEmulated.tiles, .measure = true});
  const Shape image_{64, 64, 3};
  const testing::Samples images_ = testing::make_images(8, image_, 2);
  const model::Graph graph_ = zoo::find_model("dogcat")->build(image_, 2);
};

TEST_F(TilesAmongOthers, AreTried) {
  const auto exact = reference::make_reference_backend(DType::f64);
  const auto expected = testing::Trial(*exact, graph_, {8}).train(images_, {8});
  testing::Trial trial(*backend_, graph_, {8});
  ASSERT_TRUE(trial.program().tuner().trying());
  bool tiles_tried = false;
  for (int step = 0; trial.program().tuner().trying(); ++step) {
    ASSERT_LT(step, 100) << "trials do not end";
    const auto outcome = trial.train(images_, {8});
    EXPECT_NEAR(outcome.tally.loss, expected.tally.loss, 2e-3 * expected.tally.loss);
    for (std::size_t p = 0; p < outcome.gradients.size(); ++p) {
      EXPECT_LE(testing::relative_distance(outcome.gradients[p], expected.gradients[p]), 0.3) << p;
    }
    const auto methods = methods_of(trial.program());
    tiles_tried |= std::ranges::any_of(
        methods, [](const std::string& m) { return m.find("own AMX") != std::string::npos; });
  }
  EXPECT_TRUE(tiles_tried);
}

/// Forward, too. Layers of little work, the first among them, have what the rule gives.
TEST_F(TilesAmongOthers, GiveWayToTheMethodsOfAnotherRank) {
  if (cpu::preferred_block() != 16) GTEST_SKIP() << "other kernels of this CPU have blocks of 8";
  testing::Trial trial(*backend_, graph_, {8});
  trial.program().tuner().use_tuned_methods("sss sts sss sss");
  EXPECT_EQ(trial.program().tuner().tuned_methods(), "ttt sts ttt ttt");
  EXPECT_TRUE(std::isfinite(trial.train(images_, {8}).tally.loss));
}

/// Kernels of three and of one, with and without what may be fused.
class TilesOfFloats : public WithEmulatedTiles<::testing::Test> {
 protected:
  static constexpr int kImages = 4, kClasses = 3;
  static model::Graph make_graph() {
    return testing::graph_of(
        Shape{18, 18, 3}, model::Convolution{.filters = 16, .kernel = 3}, model::Relu{},
        model::Convolution{.filters = 48, .kernel = 1}, model::Relu{},
        model::Convolution{.filters = 32, .kernel = 3, .padding = model::Padding::same},
        model::MaxPool{}, model::Relu{},
        model::Convolution{.filters = 16, .kernel = 1, .bias = false}, model::Flatten{},
        model::Dense{.units = kClasses}, model::SoftmaxCrossEntropy{});
  }
  testing::Outcome train(const cpu::KernelChoice& kernels, const testing::WeightSource& weights) {
    const auto backend = cpu::make_cpu_backend(2, kernels);
    testing::Trial trial(*backend, graph_, {kImages}, compute::Phase::train, nullptr, nullptr,
                         weights);
    auto made = trial.train(images_, {kImages});
    methods_ = methods_of(trial.program());
    return made;
  }

  const model::Graph graph_ = make_graph();
  const testing::Samples images_ = testing::make_images(kImages, {18, 18, 3}, kClasses);
  std::vector<std::string> methods_;
};

TEST_F(TilesOfFloats, TrainAsFloatsDo) {
  const auto made = train(kFloats, testing::trial_weights);
  ASSERT_EQ(methods_.size(), 4u);
  const std::string tiles = "own AMX of floats, emulated";
  EXPECT_EQ(methods_[0].find(tiles), std::string::npos) << "images are for other kernels";
  for (int i = 1; i < 4; ++i) EXPECT_EQ(methods_[i], tiles + "/" + tiles + "/" + tiles);
  const auto floats = train({}, testing::trial_weights);
  EXPECT_NEAR(made.tally.loss, floats.tally.loss, 1e-5 * floats.tally.loss);
  bool differs = false;
  for (std::size_t p = 0; p < made.gradients.size(); ++p) {
    EXPECT_LE(testing::relative_distance(made.gradients[p], floats.gradients[p]), 1e-5) << p;
    differs |= made.gradients[p] != floats.gradients[p];
  }
  EXPECT_TRUE(differs) << "tiles were not used";
}

/// Weights of 1e-20 leave tiles out forward and back; then their bits are those of the library.
TEST_F(TilesOfFloats, LeaveTinyNumbersToOthers) {
  if (cpu::preferred_block() != 16) GTEST_SKIP() << "other kernels of this CPU have blocks of 8";
  const auto tiny = [](const model::Graph::Node& node, std::size_t index) {
    std::vector<double> weights = testing::trial_weights(node, index);
    if (std::holds_alternative<model::Convolution>(node.layer)) {
      for (double& w : weights) w *= 1e-20;
    }
    return weights;
  };
  const auto made = train(kFloats, tiny), floats = train({}, tiny);
  EXPECT_EQ(made.probabilities, floats.probabilities);
  EXPECT_EQ(made.gradients, floats.gradients);
}

TEST_F(TilesOfFloats, ComeOnlyWhereTheyMeasureQuicker) {
  cpu::KernelChoice measured = kFloats;
  measured.measure = true;
  train(measured, testing::trial_weights);  // too little work to be measured
  for (const std::string& m : methods_) EXPECT_EQ(m.find("own AMX"), std::string::npos) << m;
}

using TilesOfMeasuredFloats = WithEmulatedTiles<::testing::Test>;

/// Enough work to be measured, in front of a pool and behind it.
TEST_F(TilesOfMeasuredFloats, AreTriedOnlyWhereNoWindowDependsOnIt) {
  const model::Graph graph = testing::graph_of(
      Shape{64, 64, 3}, model::Convolution{.filters = 32, .kernel = 3}, model::Relu{},
      model::Convolution{.filters = 64, .kernel = 3}, model::Relu{},
      model::Convolution{.filters = 32, .kernel = 3}, model::MaxPool{}, model::Flatten{},
      model::Dense{2}, model::SoftmaxCrossEntropy{});
  cpu::KernelChoice measured = kFloats;
  measured.measure = true;
  const auto backend = cpu::make_cpu_backend(2, measured);
  const testing::Samples images = testing::make_images(4, {64, 64, 3}, 2);
  testing::Trial trial(*backend, graph, {4});
  ASSERT_TRUE(trial.program().tuner().trying());
  std::vector<std::string> seen;
  while (trial.program().tuner().trying() && seen.size() < 60) {
    trial.train(images, {4});
    std::ranges::copy(methods_of(trial.program()), std::back_inserter(seen));
  }
  const auto tried = [&](std::size_t layer, bool forward) {
    for (std::size_t i = layer; i < seen.size(); i += 3) {
      const std::size_t at = seen[i].find("own AMX of floats");
      if (forward ? at == 0 : at != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_TRUE(tried(1, true));
  EXPECT_FALSE(tried(2, true)) << "forward in front of a pool goes by rule";
  EXPECT_TRUE(tried(2, false));
}

using TileTrainings = WithEmulatedTiles<RankJobs>;

/// Convolutions of 16 to 32 and to 48 channels, the last in front of a pool.
constexpr const char* kLayers =
    R"({"type": "convolution", "filters": 16, "kernel": 1}, {"type": "relu"},
  {"type": "convolution", "filters": 32, "kernel": 3, "padding": "same"}, {"type": "relu"},
  {"type": "convolution", "filters": 48, "kernel": 3, "padding": "same"},)";

TEST_F(TileTrainings, ReproducibleOnesHaveTheSameBitsAtAnyNumberOfRanksAndThreads) {
  RankJob direct{"direct", flags("adam", kLayers), own_kernels, 1};
  direct.flags.reproducible = true;
  const std::vector<double> others = train(direct, 4, folder("direct"))[0].weights;
  std::vector<double> expected;
  for (const auto& [ranks, threads] : {std::pair{1, 1}, {1, 3}, {2, 2}, {3, 1}}) {
    const auto backend = [threads = threads] { return cpu::make_cpu_backend(threads, kEmulated); };
    RankJob made{"tiles", flags("adam", kLayers), backend, ranks};
    made.flags.reproducible = true;
    made.flags.threads = threads;
    const auto folder_name = std::to_string(ranks) + " ranks of " + std::to_string(threads);
    for (const RankResult& result : train(made, 4, folder(folder_name))) {
      if (expected.empty()) expected = result.weights;
      EXPECT_TRUE(result.weights == expected) << folder_name;
      EXPECT_FALSE(result.weights == others) << "tiles were not used";
    }
  }
}

}  // namespace
}  // namespace cputrain::training::amx_trainings_test
