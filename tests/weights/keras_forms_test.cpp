#include "model/normalization.h"
#include "tests/weights/made_keras.h"

/// Files whose layers could be taken for others.
namespace cputrain::weights {
namespace {

using namespace model;
using KerasForms = MadeKeras;

const std::vector<std::vector<std::size_t>> kFour{{3}, {3}, {3}, {3}};

/// So many convolutions of one shape, with these names.
Graph equal_layers(const std::vector<std::string>& names, const Input& input = {}) {
  Graph graph({2, 2, 3}, input);
  for (const std::string& name : names) {
    graph.add(Convolution{.filters = 3, .kernel = 1, .bias = false}, name);
  }
  return graph;
}

std::vector<std::string> counted_names(const std::string& word, int most) {
  std::vector<std::string> names;
  for (int i = 1; i <= most; ++i) names.push_back(word + std::to_string(i));
  return names;
}

/// conv10 comes before conv2 in the alphabet, so their order says nothing.
TEST_F(KerasForms, MembersHaveNamesAndNoOrder) {
  for (const std::string& name : counted_names("conv", 10)) {
    layer(name, "conv2d_" + name, {{1, 1, 3, 3}});
  }
  const WeightArrays arrays = read(equal_layers(counted_names("conv", 10)));
  expect_taken(arrays, "conv2/kernel", "conv2/vars/0");
  expect_taken(arrays, "conv10/kernel", "conv10/vars/0");
  const WeightArrays others = read(equal_layers(counted_names("c", 10)));
  EXPECT_EQ(others.origin, "Keras' layout, unknown names");
  EXPECT_EQ(others.find("c1/kernel"), nullptr);
}

/// One layer is called as the member that another is: neither is meant for certain.
TEST_F(KerasForms, NamesThatMeanTwoLayersMeanNone) {
  layer("first", "second", {{1, 1, 3, 3}});
  layer("second", "third", {{1, 1, 3, 3}});
  const WeightArrays arrays = read(equal_layers({"first", "second"}));
  EXPECT_EQ(arrays.find("first/kernel"), nullptr);
  expect_taken(arrays, "second/kernel", "first/vars/0");  // the layer's own name
}

TEST_F(KerasForms, ClassesThatAreNoneOfKerasHaveNoOrder) {
  layer("layers/conv2d", "made_up", {{1, 1, 3, 3}});
  layer("layers/my_block/conv", "inner", {{1, 1, 3, 3}});
  texts_.config = R"({"class_name": "Sequential", "config": {"layers": [
      {"class_name": "MyBlock", "config": {"name": "block"}},
      {"class_name": "Conv2D", "config": {"name": "made_up"}}]}})";
  EXPECT_EQ(read(equal_layers({"a", "b"})).origin, "Keras' layout, unknown names");
  texts_.config = "";
  EXPECT_EQ(read(equal_layers({"a", "b"})).origin, "Keras' layout, unknown names");
  // A wrapper in the list of layers is one of another class, too.
  layer("layers/wrapped", "w", {{1, 1, 3, 3}});
  EXPECT_EQ(read(equal_layers({"a", "b", "c"})).origin, "Keras' layout, unknown names");
}

TEST_F(KerasForms, ConfigBringsLayersIntoOrder) {
  layer("layers/sequential/layers/conv2d", "x", {{1, 1, 3, 3}});
  layer("layers/conv2d", "y", {{1, 1, 3, 3}});
  EXPECT_EQ(read(equal_layers({"a", "b"})).origin, "Keras' layout, unknown names");
  texts_.config = R"({"config": {"layers": [
      {"class_name": "Sequential", "config": {"layers": [{"class_name": "Conv2D", "config": {}}]}},
      {"class_name": "Conv2D", "config": {}}]}})";
  const WeightArrays arrays = read(equal_layers({"a", "b"}));
  expect_taken(arrays, "a/kernel", "layers/sequential/layers/conv2d/vars/0");
  expect_taken(arrays, "b/kernel", "layers/conv2d/vars/0");
}

/// Keras lists the arrays of frozen layers behind those that learn.
TEST_F(KerasForms, FrozenLayersWithinAreOutOfOrder) {
  texts_.attributes[""]["layer_names"] = {"inner"};
  listed("inner", {"second/kernel:0", "first/kernel:0"}, {{1, 1, 3, 3}, {1, 1, 3, 3}});
  EXPECT_EQ(read(equal_layers({"a", "b"})).origin, "Keras' layout, unknown names");
  const WeightArrays arrays = read(equal_layers({"first", "second"}));
  expect_taken(arrays, "first/kernel", "inner/first/kernel:0");
  expect_taken(arrays, "second/kernel", "inner/second/kernel:0");
}

TEST_F(KerasForms, LayersOfOneNameAreNotMerged) {
  texts_.attributes[""]["layer_names"] = {"inner"};
  listed("inner", {"a/conv1/kernel:0", "b/conv1/kernel:0"}, {{1, 1, 3, 3}, {1, 1, 3, 3}});
  EXPECT_NE(refusal(equal_layers({"conv1", "conv2"})).find("two layers conv1"), std::string::npos);
  const ModuleNames whole{"others", {{"x", "b/conv1"}, {"y", "a/conv1"}}};
  const WeightArrays arrays = read(equal_layers({"x", "y"}), {whole});
  expect_taken(arrays, "x/kernel", "inner/b/conv1/kernel:0");
  expect_taken(arrays, "y/kernel", "inner/a/conv1/kernel:0");
}

TEST_F(KerasForms, ANetworkWithinOfOneLayer) {
  texts_.attributes[""]["layer_names"] = {"body", "last"};
  listed("body", {"first/kernel:0"}, {{1, 1, 3, 3}});
  listed("last", {"last/kernel:0"}, {{1, 1, 3, 3}});
  for (const char* name : {"first", "body"}) {
    const WeightArrays arrays = read(equal_layers({name, "last"}));
    expect_taken(arrays, std::string(name) + "/kernel", "body/first/kernel:0");
    expect_taken(arrays, "last/kernel", "last/last/kernel:0");
  }
}

TEST_F(KerasForms, ListsThatMakeNoSense) {
  texts_.attributes[""]["layer_names"] = {"a", "a"};
  EXPECT_NE(refusal(equal_layers({"a"})).find("lists the layer a twice"), std::string::npos);
  texts_.attributes[""]["layer_names"] = {"a"};
  texts_.attributes[""]["backend"] = {"theano"};
  EXPECT_NE(refusal(equal_layers({"a"})).find("turned round"), std::string::npos);
}

/// Words of its own beside a known one: what they are for is not guessed.
TEST_F(KerasForms, UnknownWordsStayUnknown) {
  Graph graph({2, 2, 3});
  graph.add(Convolution{.filters = 3, .kernel = 1}, "a");
  texts_.attributes[""]["layer_names"] = {"a"};
  listed("a", {"a/kernel:0", "a/gain:0"}, {{1, 1, 3, 3}, {3}});
  const WeightArrays arrays = read(graph);
  expect_taken(arrays, "a/kernel", "a/a/kernel:0");
  EXPECT_EQ(arrays.find("a/bias"), nullptr);
}

/// The same numbers as those of a depthwise kernel, in another network.
TEST_F(KerasForms, PlainKernelsAreNotDepthwise) {
  Graph graph({6, 6, 2});
  graph.add(Convolution{.filters = 8, .kernel = 3, .bias = false, .groups = 2}, "a");
  layer("layers/conv2d", "a", {{3, 3, 2, 4}});
  EXPECT_EQ(read(graph).find("a/kernel")->extents, (Extents{3, 3, 2, 4}));
  Graph grey({6, 6, 1});
  grey.add(Convolution{.filters = 8, .kernel = 3, .bias = false}, "a");
  EXPECT_EQ(read(grey).find("a/kernel")->extents, (Extents{3, 3, 2, 4}));
  Graph other({6, 6, 4});
  other.add(Convolution{.filters = 8, .kernel = 3, .bias = false, .groups = 4}, "a");
  EXPECT_EQ(read(other).find("a/kernel")->extents, (Extents{3, 3, 2, 4}));
}

/// What Keras 2 keeps of a training, and what a compiled network within another does.
TEST_F(KerasForms, WhatATrainingLeavesIsNotNeeded) {
  for (const char* name :
       {"optimizer/vars/0", "metrics/mean/vars/0", "layers/functional/optimizer/vars/1",
        "optimizer_weights/adam/a/m:0", "layers/dropout/seed_generator/vars/0"}) {
    EXPECT_TRUE(is_of_no_layer(name)) << name;
  }
  for (const char* name : {"layers/conv2d/vars/0", "optimizers/vars/0", "my_metrics/vars/0"}) {
    EXPECT_FALSE(is_of_no_layer(name)) << name;
  }
}

TEST_F(KerasForms, PixelsOfVggAndOfRescalingAreCaveats) {
  layer("layers/conv2d", "block1_conv1", {{1, 1, 3, 3}});
  EXPECT_NE(read(equal_layers({"a"})).caveat.find("BGR"), std::string::npos);
  texts_.config = R"({"config": {"layers": [{"class_name": "Rescaling", "config": {}},
      {"class_name": "Conv2D", "config": {}}]}})";
  EXPECT_NE(read(equal_layers({"a"})).caveat.find("(Rescaling)"), std::string::npos);
}

TEST_F(KerasForms, ARescalingIsComparedWithThePixelsHere) {
  layer("layers/conv2d", "a", {{1, 1, 3, 3}});
  const auto caveat = [&](const std::string& numbers) {
    texts_.config = R"({"config": {"layers": [{"class_name": "Rescaling", "config": {)" + numbers +
                    R"(}}, {"class_name": "Conv2D", "config": {}}]}})";
    return read(equal_layers({"a"})).caveat;
  };
  const auto ends = [&](const std::string& numbers, const std::string& end) {
    EXPECT_TRUE(caveat(numbers).ends_with(end)) << caveat(numbers);
  };
  EXPECT_EQ(caveat(R"("scale": 0.00392156862745098, "offset": 0.0)"), "");
  ends(R"("scale": 0.00784313725490196, "offset": -1)",
       "(Rescaling: x * 0.00784314 + -1), which --normalize must say here: --normalize symmetric");
  ends(R"("scale": 0.0156862745, "offset": -2)", "say here: --normalize 0.5/0.25");
  ends(R"("scale": -1, "offset": 0)", "(Rescaling: x * -1 + 0), which --normalize must say here");
  ends(R"("scale": [0.01, 0.02, 0.03], "offset": 0)",
       "say here: --normalize 0/0.392157,0.196078,0.130719");
  ends(R"("scale": [1, 2], "offset": 0)", "(Rescaling), which --normalize must say here");
}

constexpr const char* kUnit =
    R"({"class_name": "Rescaling", "config": {"scale": 0.00392156862745098,
                                  "offset": 0}},)";
constexpr const char* kImageNet = R"({"class_name": "Normalization", "config": {"axis": [-1],
    "invert": false, "mean": [0.485, 0.456, 0.406],
    "variance": [0.052441, 0.050176, 0.050625]}},)";

TEST_F(KerasForms, LayersOfPixelsAreOneTogether) {
  layer("layers/conv2d", "a", {{1, 1, 3, 3}});
  const auto caveat = [&](const std::string& front, const Input& input = {}) {
    texts_.config =
        R"({"config": {"layers": [)" + front + R"({"class_name": "Conv2D", "config": {}}]}})";
    return read(equal_layers({"a"}, input)).caveat;
  };
  const std::string unit = kUnit, imagenet = kImageNet;
  const auto ends = [&](const std::string& front, const std::string& end) {
    EXPECT_TRUE(caveat(front).ends_with(end)) << caveat(front);
  };
  ends(unit + imagenet, "which --normalize must say here: --normalize imagenet");
  EXPECT_EQ(caveat(unit + imagenet, normalized(kImageNetMean, kImageNetDeviation)), "");
  ends(imagenet, "must say here (--normalize imagenet if it got pixels from 0 to 1)");
  ends(unit + R"({"class_name": "Normalization", "config": {"mean": null, "variance": null}},)",
       "(Rescaling, Normalization), which --normalize must say here");
  ends(R"({"class_name": "Normalization", "config": {"axis": -1, "variance": 16256.25, "mean":
          {"class_name": "__numpy__", "config": {"value": [127.5]}}}},)",
       "must say here: --normalize symmetric");
  ends(R"({"class_name": "Lambda", "config": {}},)", "(Lambda), which --normalize must say here");
  EXPECT_EQ(caveat(R"({"class_name": "Rescaling", "config": {"scale": 0.00784313725490196}},
                      {"class_name": "Rescaling", "config": {"scale": 0.5}},)"),
            "");
}

TEST_F(KerasForms, OnlyLayersInFrontAreOfPixels) {
  layer("layers/conv2d", "a", {{1, 1, 3, 3}});
  const std::string convolution = R"({"class_name": "Conv2D", "config": {}})";
  texts_.config = R"({"config": {"layers": [)" + convolution +
                  R"(, {"class_name": "Rescaling", "config": {"scale": 0.5}}]}})";
  EXPECT_EQ(read(equal_layers({"a"})).caveat, "");
}

TEST_F(KerasForms, ACropInFrontIsACaveat) {
  layer("layers/conv2d", "a", {{1, 1, 3, 3}});
  texts_.config = R"({"config": {"layers": [{"class_name": "CenterCrop", "config":
      {"height": 24, "width": 32}}, {"class_name": "Conv2D", "config": {}}]}})";
  const std::string caveat = read(equal_layers({"a"})).caveat;
  EXPECT_NE(caveat.find("(CenterCrop to 24x32)"), std::string::npos) << caveat;
  EXPECT_NE(caveat.find("--fit crop"), std::string::npos) << caveat;
}

/// The older form has the same words at its root; what it says may be no JSON.
TEST_F(KerasForms, ARescalingOfTheOlderForm) {
  listed("a", {"a/kernel:0"}, {{1, 1, 3, 3}});
  texts_.attributes[""]["layer_names"] = {"a"};
  const std::string network = R"({"class_name": "Model", "config": {"layers": [
      {"class_name": "Rescaling", "config": {"scale": 0.00784313725490196, "offset": -1}}]}})";
  for (const std::string& config : {network, R"({"config": [)" + network + "]}"}) {
    texts_.config = config;
    EXPECT_NE(read(equal_layers({"a"})).caveat.find("symmetric"), std::string::npos);
  }
  texts_.config = R"({"config": NaN})";
  EXPECT_EQ(read(equal_layers({"a"})).caveat, "");
}

TEST_F(KerasForms, PixelsOfResNetV2AreACaveat) {
  layer("layers/conv2d", "conv1_conv", {{1, 1, 3, 3}});
  EXPECT_EQ(read(equal_layers({"a"})).caveat, "") << "ResNet has such a layer, too";
  layer("layers/batch_normalization", "post_bn", kFour);
  EXPECT_NE(read(equal_layers({"a"})).caveat.find("ResNetV2"), std::string::npos);
  EXPECT_EQ(read(equal_layers({"a"}, normalized(0.5f, 0.5f))).caveat, "");
  texts_.config = R"({"config": {"layers": [{"class_name": "Rescaling", "config":
      {"scale": 0.00392156862745098}}]}})";
  EXPECT_EQ(read(equal_layers({"a"})).caveat, "") << "it says what it does";
}

TEST_F(KerasForms, NetworksThatAreOthersHereAreRefused) {
  layer("layers/conv2d", "conv1_conv", {{1, 1, 3, 3}});
  layer("layers/batch_normalization", "conv1_bn", kFour);
  EXPECT_EQ(refusal(equal_layers({"a", "b"})), "") << "DenseNet has these, too";
  layer("layers/conv2d_1", "conv2_block1_3_conv", {{1, 1, 3, 3}});
  const std::string text = refusal(equal_layers({"a", "b"}));
  EXPECT_NE(text.find("Keras' ResNet50, which has strides and padding elsewhere"),
            std::string::npos);
  EXPECT_EQ(text.find("--partial"), std::string::npos) << text;
  EXPECT_EQ(refusal(equal_layers({"conv1_conv", "conv2_block1_3_conv"})), "") << "a model file";
  layer("layers/batch_normalization_1", "post_bn", kFour);
  EXPECT_EQ(refusal(equal_layers({"a", "b"})), "") << "ResNetV2";
}

TEST_F(KerasForms, MobileNetIsAnotherHere) {
  layer("layers/conv2d", "Conv1", {{1, 1, 3, 3}});
  layer("layers/batch_normalization", "bn_Conv1", kFour);
  layer("layers/depthwise_conv2d", "expanded_conv_depthwise", {{3, 3, 3, 1}});
  EXPECT_NE(refusal(equal_layers({"a", "b"})).find("Keras' MobileNetV2"), std::string::npos);
}

TEST(ReadOnce, KeepsWhatItReadLast) {
  testing::TemporaryFolder folder;
  const auto path = folder.path() / "w.safetensors";
  safetensors::write(path, to_metadata({}), {});
  int reads = 0;
  const ReadKeras read = read_once([&](const std::filesystem::path& name) {
    ++reads;
    return KerasFile{name, safetensors::open(path), {}};
  });
  const ReadKeras copy = read;  // as services are copied
  EXPECT_EQ(read("a").path, "a");
  EXPECT_EQ(copy("a").path, "a");
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(read("b").path, "b");
  EXPECT_EQ(reads, 2);
}

}  // namespace
}  // namespace cputrain::weights
