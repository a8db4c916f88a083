#include "weights/keras_arrays.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/text.h"
#include "tests/weights/made_keras_config.h"

namespace cputrain::weights {
namespace {

using namespace model;
using Found = std::vector<std::string>;

KerasDifferences differences(const std::string& config, const Graph& graph) {
  std::vector<KerasLayer> layers;
  KerasPairs pairs;
  layers.reserve(graph.nodes().size());
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (graph.nodes()[i].parameters.empty()) continue;
    pairs.emplace_back(i, &layers.emplace_back(KerasLayer{.name = graph.nodes()[i].name}));
  }
  return keras_differences(network_said_by(config).value_or(KerasNetwork{}), graph, pairs);
}

Found found(const std::string& config, const Graph& graph) {
  return differences(config, graph).layers;
}

struct Chain {
  Convolution stem{.filters = 4, .kernel = 3, .stride = 2, .padding = Padding::same};
  BatchNorm norm{};
  std::vector<Layer> between{Relu{}, MaxPool{}};
  std::vector<Layer> behind{};
};

/// stem, norm, between, last, (flat), head.
Graph our_chain(const Chain& of) {
  Graph graph({16, 16, 3});
  graph.add(of.stem, "stem");
  graph.add(of.norm, "norm");
  for (const Layer& layer : of.between) graph.add(layer);
  graph.add(Convolution{.filters = 4, .kernel = 3, .padding = Padding::same}, "last");
  graph.add(GlobalAveragePool{});
  graph.add(Dropout{0.5f});
  graph.add(Dense{2}, "head");
  for (const Layer& layer : of.behind) graph.add(layer);
  graph.add(SoftmaxCrossEntropy{});
  return graph;
}

const std::string kKerasStem =
    keras_layer("Conv2D", "stem", keras_windows("kernel_size", 3, 2, "same") + kKerasLinear);
const std::string kKerasNorm = keras_layer("BatchNormalization", "norm", R"("epsilon": 0.001)");
const std::string kKerasRelu =
    keras_layer("ReLU", "r", R"("max_value": null, "negative_slope": 0.0)");
const std::string kKerasPool = keras_layer("MaxPooling2D", "p", keras_windows("pool_size", 2, 2));
const std::string kKerasLast =
    keras_layer("Conv2D", "last", keras_windows("kernel_size", 3, 1, "same") + kKerasLinear);
const std::string kKerasGlobal = keras_layer("GlobalAveragePooling2D", "g");
const std::string kKerasHead = keras_layer("Dense", "head", R"("activation": "softmax")");

/// The same chain in Keras' words; the parts of it that differ.
struct KerasChain {
  std::string stem = kKerasStem, norm = kKerasNorm, between = kKerasRelu + "," + kKerasPool,
              last = kKerasLast, global = kKerasGlobal, head = kKerasHead;
};
std::string sequential(const KerasChain& of) {
  return keras_network("Sequential", join(Found{of.stem, of.norm, of.between, of.last, of.global,
                                                keras_layer("Dropout", "d"), of.head},
                                          ","));
}

TEST(KerasDifferences, AreNoneInTheSameChain) {
  EXPECT_EQ(found(sequential({}), our_chain({})), Found{});
  EXPECT_EQ(differences(sequential({}), our_chain({})).outputs, "");
  EXPECT_EQ(found("", our_chain({})), Found{});
  EXPECT_EQ(found("{", our_chain({})), Found{});
}

TEST(KerasDifferences, OfALayerItself) {
  const auto stem = [](const std::string& words) {
    return found(sequential({.stem = keras_layer("Conv2D", "stem", words)}), our_chain({}));
  };
  EXPECT_EQ(stem(keras_windows("kernel_size", 3, 1, "same") + kKerasLinear),
            Found{"stem: stride 1 in the file, 2 here"});
  EXPECT_EQ(stem(keras_windows("kernel_size", 3, 2) + kKerasLinear),
            Found{"stem: padding valid in the file, same here"});
  EXPECT_EQ(stem(keras_windows("kernel_size", 3, 2, "same", 2) + kKerasLinear),
            Found{"stem: dilation_rate 2x2 in the file, none here"});
  EXPECT_EQ(stem(keras_windows("kernel_size", 3, 2, "same") + kKerasLinear +
                 R"(, "data_format": "channels_first")"),
            Found{"stem: data_format channels_first in the file, none here"});
  EXPECT_EQ(stem(keras_windows("kernel_size", 3, 2, "same") + kKerasLinear + R"(, "groups": 3)"),
            Found{"stem: groups 3 in the file, 1 here"});
  EXPECT_EQ(found(sequential({}), our_chain({.norm = {.epsilon = 0.1f}})),
            Found{"norm: epsilon 0.001 in the file, 0.1 here"});
  EXPECT_EQ(found(sequential({}), our_chain({.norm = {.epsilon = 1.001e-3f}})), Found{});
}

TEST(KerasDifferences, OfWhatStandsBetweenLayers) {
  const Graph ours = our_chain({});
  EXPECT_EQ(found(sequential({}), our_chain({.between = {MaxPool{}}})),
            Found{"between norm and last: relu then max_pool of 2 (stride 2, valid) in the file, "
                  "max_pool of 2 (stride 2, valid) here"});
  EXPECT_EQ(found(sequential({}), our_chain({.between = {Relu{}, AveragePool{}}})).size(), 1u);
  EXPECT_EQ(found(sequential({}), our_chain({.between = {Relu{}, MaxPool{3, 2}}})).size(), 1u);
  EXPECT_EQ(found(sequential({}), our_chain({.between = {Relu6{}, MaxPool{}}})).size(), 1u);
  // The activation may be an argument of the layer before.
  const std::string bent = keras_layer(
      "Conv2D", "stem", keras_windows("kernel_size", 3, 2, "same") + R"(, "activation": "relu")");
  EXPECT_EQ(found(sequential({.stem = bent}), ours),
            Found{"between stem and norm: relu in the file, nothing here"});
  EXPECT_EQ(found(sequential({.global = keras_layer("GlobalMaxPooling2D", "g")}), ours),
            Found{"between last and head: global_max_pool in the file, global_average_pool here"});
  const std::string gelu = keras_layer("Activation", "r", R"("activation": "gelu")");
  EXPECT_EQ(found(sequential({.between = gelu + "," + kKerasPool}), ours).size(), 1u);
  EXPECT_EQ(
      found(sequential({.norm = kKerasNorm + "," + kKerasLast, .last = kKerasRelu}), ours).size(),
      2u);
}

TEST(KerasDifferences, OfSlopesBelowZero) {
  const auto slopes = [](const std::string& layer, float ours) {
    return found(sequential({.between = kKerasPool + "," + layer}),
                 our_chain({.between = {LeakyRelu{ours}, MaxPool{}}}));
  };
  const auto leaky = [](const std::string& words) { return keras_layer("LeakyReLU", "r", words); };
  for (const auto& [layer, slope] : std::vector<std::pair<std::string, float>>{
           {leaky(R"("negative_slope": 0.1)"), 0.1f},
           {leaky(R"("alpha": 0.30000001192092896)"), 0.3f},
           {leaky(""), 0.3f},
           {keras_layer("ReLU", "r", R"("max_value": null, "negative_slope": 0.25)"), 0.25f},
           {keras_layer("LeakyRelu", "r", "", R"(, "module": "keras.src.ops.nn")"), 0.2f},
           {keras_layer("Activation", "r", R"("activation": "leaky_relu")"), 0.2f}}) {
    EXPECT_EQ(slopes(layer, slope), Found{});
    const std::string pool = " then max_pool of 2 (stride 2, valid) ";
    EXPECT_EQ(slopes(layer, 0.5f),
              Found{fmt::format("between norm and last: leaky_relu of slope {}{}in the file, "
                                "leaky_relu of slope 0.5{}here",
                                slope, pool, pool)});
  }
  EXPECT_EQ(slopes(kKerasRelu, 0.5f).size(), 1u);
}

TEST(KerasDifferences, AreNoneWhereTheSameIsSaidInOtherWords) {
  const Graph ours = our_chain({});
  EXPECT_EQ(found(sequential({.between = kKerasPool + "," + kKerasRelu}), ours), Found{});
  EXPECT_EQ(found(sequential({.global = keras_layer("AveragePooling2D", "g",
                                                    keras_windows("pool_size", 4, 4)) +
                                        "," + keras_layer("Flatten", "f")}),
                  ours),
            Found{});
  EXPECT_EQ(found(sequential({.between = kKerasRelu + "," + kKerasPool + "," + kKerasRelu}), ours),
            Found{});
  const std::string every_second =
      keras_layer("MaxPooling2D", "p", keras_windows("pool_size", 1, 2));
  EXPECT_EQ(
      found(sequential({.between = every_second}), our_chain({.between = {AveragePool{1, 2}}})),
      Found{});
  const auto pad = [](int before, int after) {
    return keras_layer("ZeroPadding2D", "z",
                       fmt::format(R"("padding": [[{0}, {1}], [{0}, {1}]])", before, after));
  };
  const std::string valid =
      keras_layer("Conv2D", "stem", keras_windows("kernel_size", 3, 2) + kKerasLinear);
  // With 16 pixels in strides of 2 `same` pads the end alone, and a row too many is never read.
  EXPECT_EQ(found(sequential({.stem = pad(0, 1) + "," + valid}), ours), Found{});
  EXPECT_EQ(found(sequential({.stem = pad(0, 2) + "," + valid}), ours), Found{});
  EXPECT_EQ(found(sequential({.stem = pad(1, 1) + "," + valid}), ours),
            Found{"stem: padding valid behind zeros 1,1,1,1 in the file, same here"});
  const std::string image = keras_layer("InputLayer", "i"), scale = keras_layer("Rescaling", "s");
  EXPECT_EQ(found(sequential({.stem = image + "," + scale + "," + kKerasStem}), ours), Found{});
}

/// Zeros are not what a max pool's own padding is, unless nothing is below them.
TEST(KerasDifferences, ZerosBeforeAMaxPool) {
  const std::string theirs = keras_layer("ZeroPadding2D", "z", R"("padding": [[1, 1], [1, 1]])") +
                             "," +
                             keras_layer("MaxPooling2D", "p", keras_windows("pool_size", 3, 2));
  const MaxPool own{3, 2, Padding::half};
  EXPECT_EQ(found(sequential({.between = kKerasRelu + "," + theirs}),
                  our_chain({.between = {Relu{}, own}})),
            Found{});
  EXPECT_EQ(found(sequential({.between = theirs}), our_chain({.between = {own}})).size(), 1u);
  EXPECT_EQ(found(sequential({.between = theirs}),
                  our_chain({.between = {ZeroPad{1, 1, 1, 1}, MaxPool{3, 2}}})),
            Found{});
}

TEST(KerasDifferences, AreNotGuessedWhereTheFileLeavesThingsOpen) {
  const Graph ours = our_chain({.stem = {.filters = 4, .kernel = 3}, .between = {}});
  // Keras 1 has other words.
  EXPECT_EQ(found(sequential({.stem = keras_layer("Conv2D", "stem"),
                              .norm = keras_layer("BatchNormalization", "norm"),
                              .between = keras_layer("Mine", "m")}),
                  ours),
            Found{});
  const std::string custom = R"({"class_name": "ReLU", "registered_name": "Mine>ReLU",
                                 "config": {"name": "r"}})";
  EXPECT_EQ(found(sequential({.between = custom + "," + kKerasPool}), our_chain({})), Found{});
  const std::string mine = keras_layer("Activation", "r", R"("activation": "my_relu")");
  EXPECT_EQ(found(sequential({.between = mine + "," + kKerasPool}), our_chain({})), Found{});
  // A network of a class of one's own may call its layers in any order.
  EXPECT_EQ(found(keras_network(
                      "Mine", kKerasStem + "," + kKerasNorm + "," + kKerasLast + "," + kKerasHead),
                  our_chain({})),
            Found{});
  EXPECT_EQ(found(keras_network("Mine",
                                keras_layer("Conv2D", "stem", keras_windows("kernel_size", 3, 4))),
                  our_chain({})),
            Found{"stem: stride 4 in the file, 2 here"});
}

TEST(KerasDifferences, BehindTheLastLayer) {
  const auto head = [](const std::string& word) {
    return keras_layer("Dense", "head", fmt::format(R"("activation": "{}")", word));
  };
  EXPECT_EQ(differences(sequential({.head = head("sigmoid")}), our_chain({})).outputs, "sigmoid");
  EXPECT_EQ(differences(sequential({.head = head("linear")}), our_chain({})).outputs, "");
  EXPECT_EQ(found(sequential({.head = head("relu")}), our_chain({})),
            Found{"behind head: relu in the file, nothing here"});
  EXPECT_EQ(found(sequential({.head = head("relu")}), our_chain({.behind = {Relu{}}})), Found{});
}

/// stem, norm, relu; a and b (with ReLU) read it; their sum, then b again behind it.
Graph our_branches(bool bends, bool swapped = false) {
  Graph graph({16, 16, 3});
  const auto pointwise = Convolution{.filters = 4, .kernel = 1};
  const int stem = graph.add(Convolution{.filters = 4, .kernel = 3}, "stem");
  const int a = graph.add(pointwise, "a", {stem});
  int b = graph.add(pointwise, "b", {stem});
  if (bends) b = graph.add(Relu{}, "bent", {b});
  const int sum = graph.add(Add{}, "sum", swapped ? std::vector{b, a} : std::vector{a, b});
  graph.add(Concat{}, "all", {sum, a});
  graph.add(GlobalAveragePool{});
  graph.add(Dense{2}, "head");
  graph.add(SoftmaxCrossEntropy{});
  return graph;
}

/// The same as Keras 2 or 3 writes it, whose b has its ReLU within.
std::string functional(bool keras2, const Found& concat = {"sum", "a"},
                       const std::string& sum = "Add", const std::string& module = "") {
  const auto reads = [&](const Found& names) { return keras_inbound(names, keras2); };
  const std::string one = keras_windows("kernel_size", 1, 1);
  const Found layers{keras_layer("InputLayer", "i", "", R"(, "inbound_nodes": [])"),
                     keras_layer("Conv2D", "stem",
                                 keras_windows("kernel_size", 3, 1) + kKerasLinear, reads({"i"})),
                     keras_layer("Conv2D", "b", one + R"(, "activation": "relu")", reads({"stem"})),
                     keras_layer("Conv2D", "a", one + kKerasLinear, reads({"stem"})),
                     keras_layer(sum, "sum", "", reads({"a", "b"}) + module),
                     keras_layer("Concatenate", "all", R"("axis": -1)", reads(concat)),
                     keras_layer("GlobalAveragePooling2D", "g", "", reads({"all"})),
                     keras_layer("Dense", "head", R"("activation": "softmax")", reads({"g"}))};
  return keras_network("Functional", join(layers, ","), R"(, "output_layers": [["head", 0, 0]])");
}

TEST(KerasDifferences, OfBranches) {
  for (const bool keras2 : {false, true}) {
    EXPECT_EQ(found(functional(keras2), our_branches(true)), Found{}) << keras2;
    EXPECT_EQ(found(functional(keras2), our_branches(true, true)), Found{}) << keras2;
    EXPECT_EQ(found(functional(keras2), our_branches(false)),
              Found{"between b and sum: relu in the file, nothing here"})
        << keras2;
    EXPECT_EQ(found(functional(keras2, {"sum", "b"}), our_branches(true)),
              Found{"all: it reads b in the file, a here"})
        << keras2;
  }
}

TEST(KerasDifferences, OfSumsThatAreNone) {
  const auto joined = [](const std::string& kind, const std::string& module) {
    return found(functional(false, {"sum", "a"}, kind, module), our_branches(true));
  };
  const std::string operations = R"(, "module": "keras.src.ops.numpy")";
  EXPECT_EQ(joined("Add", operations), Found{});
  const Found other{"all: it reads Multiply (sum) in the file, sum here"};
  EXPECT_EQ(joined("Multiply", ""), other);
  EXPECT_EQ(joined("Multiply", operations), other);
}

TEST(KerasDifferences, OfANetworkWithinANetwork) {
  const std::string body =
      R"({"class_name": "Functional", "config": {"name": "body", "layers": [)" +
      keras_layer("InputLayer", "i", "", R"(, "inbound_nodes": [])") + "," +
      keras_layer("Conv2D", "stem", keras_windows("kernel_size", 3, 2, "same") + kKerasLinear,
                  keras_inbound({"i"}, false)) +
      R"(], "output_layers": ["stem", 0, 0]}})";
  EXPECT_EQ(found(sequential({.stem = body}), our_chain({})), Found{});
  EXPECT_EQ(found(sequential({.stem = body}), our_chain({.between = {MaxPool{}}})).size(), 1u);
  EXPECT_EQ(found(sequential({.stem = body + "," + kKerasRelu}), our_chain({})),
            Found{"between stem and norm: relu in the file, nothing here"});
}

TEST(KerasDifferences, NonsenseIsNotKnown) {
  const std::string loop =
      keras_layer("ReLU", "x", "", keras_inbound({"y"}, true)) + "," +
      keras_layer("ReLU", "y", "", keras_inbound({"x"}, true)) + "," +
      keras_layer("Conv2D", "stem", R"("strides": [0, -1], "padding": 3, "groups": "a")",
                  keras_inbound({"x", "y"}, true)) +
      "," + keras_layer("BatchNormalization", "norm", R"("epsilon": "small")") + "," +
      keras_layer("MaxPooling2D", "p", R"("pool_size": [1e99, 2])") + "," +
      keras_layer("ZeroPadding2D", "z", R"("padding": [[1], 7])");
  for (const char* kind : {"Functional", "Model"}) {
    EXPECT_EQ(found(keras_network(kind, loop), our_chain({})), Found{}) << kind;
  }
  for (const char* text : {"[]", "1", R"({"config": 3})", R"({"config": {"layers": [1, [], "x"]}})",
                           R"({"class_name": "Sequential", "config": [null, {"config": []}]})"}) {
    EXPECT_EQ(found(text, our_chain({})), Found{}) << text;
  }
}

}  // namespace
}  // namespace cputrain::weights
