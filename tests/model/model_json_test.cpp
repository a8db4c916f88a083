#include "model/model_json.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "model/normalization.h"
#include "zoo/zoo.h"

namespace cputrain::model {
namespace {

using nlohmann::json;

Graph every_layer() {
  Graph graph({16, 16, 3}, {0.5f, {-1.0f, 0.25f, 0}});
  const int first = graph.add(Convolution{4, 3, 2, Padding::same, false, 0.25f}, "first");
  const int relu = graph.add(Relu{});
  graph.add(MaxPool{3, 1, Padding::same});
  const int dropped = graph.add(Dropout{0.25f}, "drop", {first});
  graph.add(Add{}, "sum", {relu, 3, dropped});
  graph.add(Concat{}, "both", {5, dropped});
  graph.add(Relu6{});
  graph.add(Convolution{.filters = 6,
                        .kernel = 3,
                        .padding = Padding::half,
                        .groups = 2,
                        .init = Initializer::he_normal_out});
  graph.add(Silu{});
  graph.add(BatchNorm{0.01f, 0.9f});
  graph.add(LeakyRelu{0.25f});
  graph.add(LayerNorm{.epsilon = 1e-5f, .offset = false});
  graph.add(ZeroPad{1, 2, 3, 4});
  graph.add(AveragePool{2, 1, Padding::valid});
  graph.add(GlobalAveragePool{});
  graph.add(Flatten{});
  graph.add(Dense{.units = 3, .bias = false, .l2 = 0.5f, .init = Initializer::uniform_in});
  graph.add(SoftmaxCrossEntropy{});
  return graph;
}

TEST(ModelJson, ARoundTripKeepsEverything) {
  const Graph graph = every_layer();
  const Graph back = graph_from_json(json::parse(to_json(graph).dump()), "test");
  EXPECT_EQ(to_json(back), to_json(graph));
  ASSERT_EQ(back.nodes().size(), graph.nodes().size());
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    EXPECT_EQ(back.nodes()[i].name, graph.nodes()[i].name);
    EXPECT_EQ(back.nodes()[i].dst, graph.nodes()[i].dst);
    EXPECT_EQ(back.nodes()[i].src, graph.nodes()[i].src);
    EXPECT_EQ(back.nodes()[i].layer.index(), graph.nodes()[i].layer.index());
  }
  EXPECT_EQ(back.input(), (Input{0.5f, {-1.0f, 0.25f, 0}}));
}

TEST(ModelJson, PixelsByMeanAndDeviation) {
  const auto input_of = [](const json& fields) {
    json model = to_json(every_layer());
    model["input"].erase("scale");
    model["input"].erase("offset");
    model["input"].update(fields);
    return graph_from_json(model, "test").input();
  };
  const Input imagenet =
      input_of({{"mean", {0.485, 0.456, 0.406}}, {"deviation", {0.229, 0.224, 0.225}}});
  EXPECT_EQ(imagenet, parse_normalization("imagenet"));
  for (const double pixel : {0.0, 64.0, 255.0}) {
    EXPECT_NEAR(pixel * imagenet.scale.of[2] + imagenet.offset.of[2], (pixel / 255 - 0.406) / 0.225,
                1e-6);
  }
  const Input symmetric = input_of({{"mean", 0.5}, {"deviation", 0.5}});
  EXPECT_FLOAT_EQ(symmetric.scale.of[1], 2.0f / 255);
  EXPECT_EQ(symmetric.offset, PerColour(-1));
  EXPECT_EQ(input_of(json::object()), Input{});
}

/// The message for a description changed by `change`.
std::string refused(const std::function<void(json&)>& change) {
  json model = to_json(every_layer());
  change(model);
  try {
    graph_from_json(model, "test.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_NE(std::string(error.what()).find("test.json"), std::string::npos) << error.what();
    return error.what();
  }
  return "";
}

TEST(ModelJson, HostileDescriptionsAreRefusedByName) {
  EXPECT_NE(refused([](json& m) { m = json::array(); }), "");
  EXPECT_NE(refused([](json& m) { m.erase("input"); }), "");
  EXPECT_NE(refused([](json& m) { m["input"]["height"] = 0; }), "");
  EXPECT_NE(refused([](json& m) { m["input"]["height"] = 1e9; }), "");
  EXPECT_NE(refused([](json& m) { m["input"]["scale"] = {1, 2}; }), "");
  EXPECT_NE(refused([](json& m) { m["input"]["mean"] = 0.5; }), "") << "beside scale and offset";
  EXPECT_NE(refused([](json& m) { m["input"] = {{"height", 16}, {"deviation", 0}}; }), "");
  EXPECT_NE(refused([](json& m) { m["layers"] = json::array(); }), "");
  EXPECT_NE(refused([](json& m) { m["layers"][0] = 7; }), "");
  EXPECT_NE(refused([](json& m) { m["layers"][0]["filters"] = -4; }), "");
  EXPECT_NE(refused([](json& m) { m["layers"][0]["filters"] = "many"; }), "");
  EXPECT_NE(refused([](json& m) { m["layers"][0]["padding"] = "some"; }), "");
  EXPECT_NE(refused([](json& m) { m["layers"][0].erase("kernel"); }), "");
  EXPECT_NE(refused([](json& m) { m["layers"][0]["groups"] = 0; }), "");
  EXPECT_NE(refused([](json& m) { m["layers"][0]["groups"] = 2; }), "");  // of three channels
  EXPECT_NE(refused([](json& m) { m["layers"][0]["init"] = "zeros"; }), "");
  EXPECT_NE(refused([](json& m) { m["layers"][3]["rate"] = 1.0; }), "");
  EXPECT_NE(refused([](json& m) { m["layers"][4]["from"] = {"nobody"}; }), "");
  EXPECT_NE(refused([](json& m) { m["layers"][1]["name"] = "first"; }), "");
  EXPECT_NE(refused([](json& m) { m["layers"].erase(m["layers"].size() - 1); }), "");
  const std::string message = refused([](json& m) { m["layers"][0]["type"] = "convolutoin"; });
  EXPECT_NE(message.find("convolutoin"), std::string::npos) << message;
}

}  // namespace
}  // namespace cputrain::model
