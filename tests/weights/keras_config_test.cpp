#include "weights/keras_network.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace cputrain::weights {
namespace {

std::optional<Shape> keras_image(const std::string& config) {
  const auto network = network_said_by(config);
  return network ? network->image : std::nullopt;
}

/// A network of these layers.
std::string network(const std::string& layers, const std::string& more = "") {
  return fmt::format(R"({{"class_name": "Functional", "config": {{"layers": [{}]}}{}}})", layers,
                     more);
}

std::string layer(const std::string& kind, const std::string& config) {
  return fmt::format(R"({{"class_name": "{}", "config": {{{}}}}})", kind, config);
}

const std::string kAny = layer("InputLayer", R"("batch_shape": [null, null, null, 3])");
const std::string kDense = layer("Dense", R"("name": "head")");

TEST(KerasImage, IsWhatTheFirstLayerTakes) {
  const auto image = [](const std::string& layers) { return keras_image(network(layers)); };
  const Shape wanted{160, 192, 3};
  EXPECT_EQ(image(layer("InputLayer", R"("batch_shape": [null, 160, 192, 3])") + "," + kDense),
            wanted);
  EXPECT_EQ(image(layer("Conv2D", R"("batch_input_shape": [8, 160, 192, 3])")), wanted);
  // Layers within say what the network leaves open.
  const std::string inner = network(layer("InputLayer", R"("batch_shape": [null, 160, 192, 3])"));
  EXPECT_EQ(image(kAny + "," + inner), wanted);
  EXPECT_EQ(image(kAny + "," + kDense), std::nullopt);
}

TEST(KerasImage, IsWhatAResizingLayerMakes) {
  const std::string input = layer("InputLayer", R"("batch_shape": [null, 300, 300, 3])");
  EXPECT_EQ(keras_image(network(input + "," + layer("Resizing", R"("height": 224, "width": 224)"))),
            (Shape{224, 224, 3}));
  EXPECT_EQ(keras_image(network(input + "," + layer("Resizing", R"("height": null)"))),
            std::nullopt);
}

/// Behind layers with weights are features, and a crop only takes a part of what is there.
TEST(KerasImage, IsNotWhatOtherLayersMake) {
  const std::string input = layer("InputLayer", R"("batch_shape": [null, 300, 300, 3])");
  const std::string sides = R"("height": 224, "width": 224)";
  const Shape wanted{300, 300, 3};
  EXPECT_EQ(keras_image(network(input + "," + kDense + "," + layer("Resizing", sides))), wanted);
  for (const char* kind : {"CenterCrop", "RandomCrop"}) {
    EXPECT_EQ(keras_image(network(input + "," + layer(kind, sides) + "," + kDense)), wanted);
    EXPECT_EQ(keras_image(network(kAny + "," + layer(kind, sides) + "," + kDense)), std::nullopt);
    EXPECT_EQ(keras_image(network(input + "," + kDense + "," + layer(kind, sides))), wanted);
  }
}

TEST(KerasImage, IsNothingWhereItIsNoImageOfThreeColours) {
  for (const char* shape :
       {"[null, 28, 28, 1]", "[null, 3, 224, 224]", "[null, 784]", "[null, 0, 224, 3]",
        "[null, 99999, 224, 3]", "[null, 22.5, 224, 3]", "\"224\"", "[1e99, 224, -1, 3]"}) {
    EXPECT_EQ(keras_image(network(layer("InputLayer", fmt::format(R"("batch_shape": {})", shape)))),
              std::nullopt)
        << shape;
  }
  EXPECT_EQ(keras_image(""), std::nullopt);
  EXPECT_EQ(keras_image("{"), std::nullopt);
  EXPECT_EQ(keras_image("[1, 2]"), std::nullopt);
}

/// A network that is a class of its own lists no layers.
TEST(KerasImage, IsWhatANetworkWasBuiltFor) {
  EXPECT_EQ(keras_image(R"({"class_name": "Mine", "config": {},
                            "build_config": {"input_shape": [null, 32, 32, 3]}})"),
            (Shape{32, 32, 3}));
}

}  // namespace
}  // namespace cputrain::weights
