#include "tests/weights/made_keras.h"

namespace cputrain::weights {
namespace {

using namespace model;
using KerasArrays = MadeKeras;

const std::vector<std::vector<std::size_t>> kNorm{{4}, {4}, {4}, {4}};

/// stem, norm, deep (depthwise), flat, head.
Graph chain() {
  Graph graph({6, 6, 3});
  graph.add(Convolution{.filters = 4, .kernel = 3}, "stem");
  graph.add(BatchNorm{}, "norm");
  graph.add(Convolution{.filters = 8, .kernel = 3, .bias = false, .groups = 4}, "deep");
  graph.add(Flatten{});
  graph.add(Dense{2}, "head");
  graph.add(SoftmaxCrossEntropy{});
  return graph;
}

/// Two convolutions of one shape read one map, and are added.
Graph branches() {
  Graph graph({6, 6, 3});
  const int stem = graph.add(Convolution{.filters = 4, .kernel = 3, .bias = false}, "stem");
  const int a = graph.add(Convolution{.filters = 4, .kernel = 1, .bias = false}, "a", {stem});
  const int b = graph.add(Convolution{.filters = 4, .kernel = 1, .bias = false}, "b", {stem});
  graph.add(Add{}, "sum", {a, b});
  graph.add(GlobalAveragePool{});
  graph.add(Dense{2}, "head");
  graph.add(SoftmaxCrossEntropy{});
  return graph;
}

TEST_F(KerasArrays, ByTheNamesOfLayers) {
  layer("layers/conv2d", "stem", {{3, 3, 3, 4}, {4}});
  layer("layers/batch_normalization", "norm", kNorm);
  layer("layers/depthwise_conv2d", "deep", {{3, 3, 4, 2}});
  layer("layers/dense", "head", {{32, 2}, {2}});
  array("layers/custom/vars/0", {7});
  texts_.unread = {"optimizer/vars/0", "layers/dropout/seed_generator/vars/0",
                   "layers/custom/vars/1", "layers/x/vars/0"};
  const WeightArrays arrays = read(chain());
  expect_taken(arrays, "stem/bias", "layers/conv2d/vars/1");
  expect_taken(arrays, "norm/gamma", "layers/batch_normalization/vars/0");
  expect_taken(arrays, "norm/moving_variance", "layers/batch_normalization/vars/3");
  expect_taken(arrays, "deep/kernel", "layers/depthwise_conv2d/vars/0");
  EXPECT_EQ(arrays.find("deep/kernel")->extents, (Extents{3, 3, 1, 8}));
  EXPECT_EQ(arrays.find("deep/kernel")->file_extents, (Extents{3, 3, 4, 2}));
  expect_taken(arrays, "head/kernel", "layers/dense/vars/0");
  EXPECT_EQ(arrays.ignored.size(), 3u);      // layers/x has whole numbers alone
  EXPECT_EQ(arrays.arrays.size(), 9u + 2u);  // what no layer here has is told of
  EXPECT_EQ(arrays.origin, "Keras' layout, own names");
  EXPECT_EQ(arrays.path, "w.keras");
  EXPECT_FALSE(arrays.describes_itself());
}

TEST_F(KerasArrays, ByTheOrderOfAChain) {
  constexpr int kLayers = 12;  // conv2d_10 comes behind conv2d_9
  Graph graph({2, 2, 3});
  for (int i = 0; i < kLayers; ++i) {
    graph.add(Convolution{.filters = 3, .kernel = 1, .bias = false}, "c" + std::to_string(i));
    layer("_layer_checkpoint_dependencies/conv2d" + (i ? "_" + std::to_string(i) : ""), "",
          {{1, 1, 3, 3}});
  }
  const WeightArrays arrays = read(graph);
  expect_taken(arrays, "c2/kernel", "_layer_checkpoint_dependencies/conv2d_2/vars/0");
  expect_taken(arrays, "c10/kernel", "_layer_checkpoint_dependencies/conv2d_10/vars/0");
  EXPECT_EQ(arrays.origin, "Keras' layout, layers by their order");
}

/// A session of Keras counts on: another layer may have one of our names.
TEST_F(KerasArrays, TheOrderGoesBeforeSomeOfTheNames) {
  Graph graph({2, 2, 3});
  for (const char* name : {"conv2d", "conv2d_1"}) {
    graph.add(Convolution{.filters = 3, .kernel = 1, .bias = false}, name);
  }
  layer("layers/conv2d", "conv2d_1", {{1, 1, 3, 3}});
  layer("layers/conv2d_1", "conv2d_2", {{1, 1, 3, 3}});
  const WeightArrays arrays = read(graph);
  expect_taken(arrays, "conv2d/kernel", "layers/conv2d/vars/0");
  expect_taken(arrays, "conv2d_1/kernel", "layers/conv2d_1/vars/0");
}

TEST_F(KerasArrays, BranchesWithoutNamesAreNotGuessed) {
  layer("layers/conv2d", "", {{3, 3, 3, 4}});
  layer("layers/conv2d_1", "", {{1, 1, 4, 4}});
  layer("layers/conv2d_2", "", {{1, 1, 4, 4}});
  layer("layers/dense", "", {{4, 2}, {2}});
  EXPECT_NE(refusal(branches()).find("does not name its layers"), std::string::npos);
  // config.json says which is which; b was made first.
  texts_.config = R"({"class_name": "Functional", "config": {"layers": [
      {"class_name": "InputLayer", "config": {"name": "in"}},
      {"class_name": "Conv2D", "config": {"name": "stem"}},
      {"class_name": "Conv2D", "config": {"name": "b"}},
      {"class_name": "Conv2D", "config": {"name": "a"}},
      {"class_name": "Dense", "config": {"name": "head"}}]}})";
  const WeightArrays arrays = read(branches());
  expect_taken(arrays, "b/kernel", "layers/conv2d_1/vars/0");
  expect_taken(arrays, "a/kernel", "layers/conv2d_2/vars/0");
  texts_.config = "{";
  EXPECT_NE(refusal(branches()).find("config.json"), std::string::npos);
}

TEST_F(KerasArrays, NetworksWithinOthersAndALastLayerOfAnotherName) {
  layer("layers/functional/layers/conv2d", "stem", {{3, 3, 3, 4}});
  layer("layers/functional/layers/conv2d_1", "b", {{1, 1, 4, 4}});
  layer("layers/functional/layers/conv2d_2", "a", {{1, 1, 4, 4}});
  layer("layers/dense", "mine", {{4, 3}, {3}});
  const WeightArrays arrays = read(branches());
  expect_taken(arrays, "b/kernel", "layers/functional/layers/conv2d_1/vars/0");
  expect_taken(arrays, "head/kernel", "layers/dense/vars/0");  // of other classes
  EXPECT_NE(arrays.origin.find("last layer mine"), std::string::npos);
}

TEST_F(KerasArrays, OfTheOlderForm) {
  const std::string root = "model_weights";
  texts_.attributes[root] = {{"layer_names0", {"stem", "norm"}},
                             {"layer_names1", {"inner", "head"}}};
  listed(root + "/stem", {"stem/kernel:0", "stem/bias:0"}, {{3, 3, 3, 4}, {4}});
  listed(root + "/norm", {"norm/beta:0", "norm/moving_mean:0", "norm/moving_variance:0"},
         {{4}, {4}, {4}});
  listed(root + "/inner", {"deep/depthwise_kernel:0", "flat/mean"}, {{3, 3, 4, 2}, {1}});
  listed(root + "/head", {"head_W_1:0", "head_b_1:0"}, {{32, 2}, {2}});  // Keras 1
  const WeightArrays arrays = read(chain());
  expect_taken(arrays, "stem/kernel", root + "/stem/stem/kernel:0");
  expect_taken(arrays, "norm/beta", root + "/norm/norm/beta:0");
  EXPECT_EQ(arrays.find("norm/gamma")->floats(), std::vector<float>(4, 1.0f));
  expect_taken(arrays, "deep/kernel", root + "/inner/deep/depthwise_kernel:0");
  expect_taken(arrays, "head/bias", root + "/head/head_b_1:0");
  texts_.attributes[root + "/stem"]["weight_names"].push_back("stem/other:0");
  EXPECT_NE(refusal(chain()).find("stem/other:0, of which it has no numbers"), std::string::npos);
}

TEST_F(KerasArrays, ThreeArraysOfANormalization) {
  layer("layers/conv2d", "stem", {{3, 3, 3, 4}, {4}});
  layer("layers/batch_normalization", "norm", {{4}, {4}, {4}});
  layer("layers/depthwise_conv2d", "deep", {{3, 3, 4, 2}});
  layer("layers/dense", "head", {{32, 2}, {2}});
  EXPECT_NE(refusal(chain()).find("norm has 3 arrays"), std::string::npos);
  texts_.config = R"({"config": {"layers": [{"class_name": "BatchNormalization",
      "config": {"name": "norm", "scale": true, "center": false}}]}})";
  const WeightArrays arrays = read(chain());
  expect_taken(arrays, "norm/gamma", "layers/batch_normalization/vars/0");
  expect_taken(arrays, "norm/moving_mean", "layers/batch_normalization/vars/1");
  EXPECT_EQ(arrays.find("norm/beta")->floats(), std::vector<float>(4, 0.0f));
}

TEST_F(KerasArrays, ALayerNormalizationHasNoStatistics) {
  Graph graph({2, 2, 3});
  for (const char* name : {"whole", "moved"}) graph.add(LayerNorm{}, name);
  layer("layers/layer_normalization", "whole", {{3}, {3}});
  layer("layers/layer_normalization_1", "moved", {{3}});
  EXPECT_NE(refusal(graph).find("moved has 1 array,"), std::string::npos);
  texts_.config = R"({"config": {"layers": [
      {"class_name": "LayerNormalization", "config": {"name": "whole"}},
      {"class_name": "LayerNormalization", "config": {"name": "moved", "scale": false}}]}})";
  const WeightArrays arrays = read(graph);
  expect_taken(arrays, "whole/gamma", "layers/layer_normalization/vars/0");
  expect_taken(arrays, "whole/beta", "layers/layer_normalization/vars/1");
  expect_taken(arrays, "moved/beta", "layers/layer_normalization_1/vars/0");
  EXPECT_EQ(arrays.find("moved/gamma")->floats(), std::vector<float>(3, 1.0f));
}

TEST_F(KerasArrays, PixelsThatTheNetworkNormalizesAreACaveat) {
  layer("layers/conv2d", "stem", {{3, 3, 3, 4}, {4}});
  layer("layers/batch_normalization", "norm", kNorm);
  layer("layers/depthwise_conv2d", "deep", {{3, 3, 4, 2}});
  layer("layers/dense", "head", {{32, 2}, {2}});
  EXPECT_EQ(read(chain()).caveat, "");
  layer("layers/normalization", "n", {{3}, {3}});
  texts_.unread = {"layers/normalization/vars/2"};
  const WeightArrays arrays = read(chain());
  EXPECT_NE(arrays.caveat.find("layers/normalization/vars/0"), std::string::npos);
  EXPECT_EQ(arrays.ignored.size(), 3u);
  EXPECT_EQ(arrays.arrays.size(), 9u);
}

TEST_F(KerasArrays, NamesOfOtherPrograms) {
  layer("layers/conv2d", "x1", {{3, 3, 3, 4}});
  layer("layers/conv2d_1", "x2", {{1, 1, 4, 4}});
  layer("layers/conv2d_2", "x3", {{1, 1, 4, 4}});
  layer("layers/dense", "top", {{4, 2}, {2}});
  const ModuleNames names{"others", {{"stem", "x1"}, {"a", "x3"}, {"b", "x2"}, {"head", "top"}}};
  const WeightArrays arrays = read(branches(), {names});
  expect_taken(arrays, "a/kernel", "layers/conv2d_2/vars/0");
  EXPECT_EQ(arrays.origin, "Keras' layout, others's names");
}

TEST(KerasTextsOfAFile, ComeBackOrAreRefused) {
  KerasTexts texts;
  texts.attributes["a"]["b"] = {"c", "\xff"};
  texts.unread = {"d"};
  texts.config = "{}";
  const KerasTexts again = keras_texts(to_metadata(texts));
  EXPECT_EQ(again.attributes.at("a").at("b").front(), "c");
  EXPECT_EQ(again.unread, texts.unread);
  EXPECT_EQ(again.config, "{}");
  EXPECT_THROW(keras_texts({}), std::runtime_error);
  EXPECT_THROW(keras_texts({{"attributes", "[]"}, {"unread", "[1]"}, {"config", ""}}),
               std::runtime_error);
}

}  // namespace
}  // namespace cputrain::weights
