#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/weights/made_keras_config.h"
#include "weights/keras_arrays.h"

namespace cputrain::weights {
namespace {

using namespace model;
using Found = std::vector<std::string>;

/// a, then head on the mean of its image.
Graph our_network() {
  Graph graph({8, 8, 3});
  graph.add(Convolution{.filters = 8, .kernel = 1}, "a");
  graph.add(BatchNorm{}, "norm");
  graph.add(GlobalAveragePool{});
  graph.add(Dense{2}, "head");
  graph.add(SoftmaxCrossEntropy{});
  return graph;
}

struct Alien {
  std::string front{}, middle{}, behind{};  ///< entries, each with a comma behind it
  std::string axis = "-1";
};

KerasDifferences compared(const Alien& of) {
  const Graph graph = our_network();
  std::vector<KerasLayer> layers{{.name = "a"}, {.name = "norm"}, {.name = "head"}};
  const KerasPairs pairs{{1, &layers[0]}, {2, &layers[1]}, {4, &layers[2]}};
  std::string all =
      of.front + keras_layer("Conv2D", "a", keras_windows("kernel_size", 1, 1) + kKerasLinear) +
      "," + keras_layer("BatchNormalization", "norm", R"("epsilon": 0.001, "axis": )" + of.axis) +
      "," + of.middle + keras_layer("GlobalAveragePooling2D", "g") + "," +
      keras_layer("Dense", "head", R"("activation": "softmax")") + "," + of.behind;
  all.pop_back();
  return keras_differences(read_keras_network(keras_network("Sequential", all)), graph, pairs);
}

/// Between norm and the mean.
Found middle(const std::string& kind, const std::string& config = "",
             const std::string& more = "") {
  return compared({.middle = keras_layer(kind, "x", config, more) + ","}).layers;
}

const std::string kOfKeras = R"(, "module": "keras.layers", "registered_name": null)";

Found between(const std::string& what) {
  return {"between norm and head: " + what +
          " then global_average_pool in the file, global_average_pool here"};
}

TEST(KerasAlienLayers, AreDifferencesBetweenLayers) {
  for (const char* kind : {"Permute", "UnitNormalization", "Cropping2D", "UpSampling2D", "Lambda",
                           "Rescaling", "Normalization", "Resizing", "CenterCrop", "Multiply"}) {
    EXPECT_EQ(middle(kind), between(fmt::format("{} (x)", kind)));
  }
  EXPECT_EQ(middle("Reshape", R"("target_shape": [4, 16, 8])"), between("Reshape (x)"));
  EXPECT_EQ(middle("Flatten", R"("data_format": "channels_first")"),
            between("Flatten (x) data_format channels_first"));
  EXPECT_EQ(middle("Softmax"), between("softmax"));
  EXPECT_EQ(middle("NewInKeras9", "", kOfKeras), between("NewInKeras9 (x)"));
  EXPECT_EQ(middle("Add", "", R"(, "module": "keras.src.ops.numpy")"), between("Add (x)"));
}

/// Functions that a network calls may be what a layer here does.
TEST(KerasAlienLayers, AreNoOperationsThatALayerDoes) {
  const std::string nn = R"(, "module": "keras.src.ops.nn")";
  EXPECT_EQ(middle("Relu", "", nn), middle("ReLU"));
  EXPECT_EQ(middle("TFOpLambda", R"("function": "nn.relu")"), middle("ReLU"));
  EXPECT_EQ(middle("TFOpLambda", R"("function": "math.multiply")"), between("TFOpLambda (x)"));
}

TEST(KerasAlienLayers, AreNoneThatChangeNothing) {
  for (const char* kind : {"Dropout", "SpatialDropout2D", "GaussianNoise", "RandomFlip",
                           "RandomRotation", "Identity", "InputLayer"}) {
    EXPECT_EQ(middle(kind, "", kOfKeras), Found{}) << kind;
  }
  EXPECT_EQ(middle("Rescaling", R"("scale": 1.0, "offset": 0.0)"), Found{});
  EXPECT_EQ(middle("Activation", R"("activation": "linear")"), Found{});
  const auto behind_mean = [](const std::string& shape) {
    return compared({.middle = keras_layer("GlobalAveragePooling2D", "m") + "," +
                               keras_layer("Reshape", "x", R"("target_shape": )" + shape) + ","});
  };
  EXPECT_EQ(behind_mean("[1, 1, 8]").layers, middle("GlobalAveragePooling2D"));
}

TEST(KerasAlienLayers, StandInFrontWhereTheyAreOfPixels) {
  const auto front = [](const std::string& kind) {
    return compared({.front = keras_layer(kind, "x") + ","}).layers;
  };
  for (const char* kind : {"Rescaling", "Normalization", "Resizing", "CenterCrop", "Lambda"}) {
    EXPECT_EQ(front(kind), Found{}) << kind;
  }
  EXPECT_EQ(front("Permute"), Found{"between input and a: Permute (x) in the file, nothing here"});
}

TEST(KerasAlienLayers, BehindTheLastLayer) {
  const auto behind = [](const std::string& kind) {
    return compared({.behind = keras_layer(kind, "x") + ","}).layers;
  };
  EXPECT_EQ(behind("Rescaling"),
            Found{"behind head: softmax then Rescaling (x) in the file, nothing here"});
  EXPECT_EQ(behind("Dropout"), Found{});
}

TEST(KerasAlienLayers, ANormalizationOfAnotherAxis) {
  EXPECT_EQ(compared({.axis = "1"}).layers, Found{"norm: axis 1 in the file, the last one here"});
  EXPECT_EQ(compared({.axis = "[1]"}).layers.size(), 1u);
  EXPECT_EQ(compared({.axis = "3"}).layers, Found{});
  EXPECT_EQ(compared({.axis = "[3]"}).layers, Found{});
  EXPECT_EQ(compared({.axis = "[-3, -2, -1]"}).layers,
            Found{"norm: axis -3,-2,-1 in the file, the last one here"});
}

TEST(KerasAlienLayers, ALayerNormalizationWithoutWeightsStandsBetweenLayers) {
  const std::string bare = R"("epsilon": 0.001, "scale": false, "center": false)";
  EXPECT_EQ(middle("LayerNormalization", bare), between("layer_norm of epsilon 0.001"));
  EXPECT_EQ(middle("LayerNormalization", bare + R"(, "axis": [1])"),
            between("layer_norm of epsilon 0.001 axis 1"));
}

/// Keras 2 writes [1] for one behind a Dense, where that is the last axis.
TEST(KerasAlienLayers, ANormalizationOfNoImage) {
  Graph graph({8, 8, 3});
  graph.add(GlobalAveragePool{});
  graph.add(Dense{4}, "wide");
  graph.add(BatchNorm{}, "norm");
  graph.add(Dense{2}, "head");
  graph.add(SoftmaxCrossEntropy{});
  const KerasLayer wide{.name = "wide"}, norm{.name = "norm"};
  const std::string layers = keras_layer("GlobalAveragePooling2D", "g") + "," +
                             keras_layer("Dense", "wide", R"("activation": "linear")") + "," +
                             keras_layer("BatchNormalization", "norm", R"("axis": [1])");
  const KerasPairs pairs{{2, &wide}, {3, &norm}};
  EXPECT_EQ(keras_differences(read_keras_network(keras_network("Sequential", layers)), graph, pairs)
                .layers,
            Found{});
}

/// Nobody knows what they do.
TEST(KerasAlienLayers, ClassesOfOnesOwnAreSaid) {
  for (const std::string& more :
       {std::string(), R"(, "registered_name": "Mine>Block")" + std::string(),
        std::string(R"(, "module": "mine", "registered_name": "Block")")}) {
    const KerasDifferences found = compared({.middle = keras_layer("Block", "x", "", more) + ","});
    EXPECT_EQ(found.layers, Found{});
    EXPECT_EQ(found.not_compared, Found{"Block (x)"});
  }
  EXPECT_EQ(compared({}).not_compared, Found{});
}

}  // namespace
}  // namespace cputrain::weights
