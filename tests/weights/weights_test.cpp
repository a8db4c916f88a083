#include "weights/load.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backends/reference/reference_backend.h"
#include "core/error.h"
#include "model/graph.h"
#include "model/model_json.h"
#include "tests/support/own_program.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"
#include "weights/description.h"
#include "weights/safetensors.h"

namespace cputrain::weights {
namespace {

model::Graph graph_with(int units) {
  model::Graph graph({8, 8, 3});
  graph.add(model::Convolution{4, 3});
  graph.add(model::Flatten{});
  graph.add(model::Dense{units});
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

TEST(Weights, SurviveAFile) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "weights.safetensors";
  const model::Graph graph = graph_with(3);
  const auto backend = reference::make_reference_backend(DType::f32);
  const testing::OwnProgram saved(*backend, graph, {1}), loaded(*backend, graph, {1});
  initialise_weights(graph, saved.program(), 11, saved.arenas().weights);
  ModelDescription mine{"mine", {"a", "b", "c"}, graph, 11};
  mine.validation_split = 0.25;
  mine.data = TrainingData{0xfedcba9876543210u, data::Expand::six_leaky, 7, {1, 255}, {3}};
  save_weights(path, mine, saved.program(), saved.arenas().weights);

  const ModelDescription description = read_description(path);
  EXPECT_EQ(description.model, "mine");
  EXPECT_EQ(description.classes, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(description.seed, 11u);
  EXPECT_EQ(description.validation_split, 0.25);
  ASSERT_TRUE(description.data);
  EXPECT_EQ(description.data->fingerprint, 0xfedcba9876543210u);
  EXPECT_EQ(description.data->expand, data::Expand::six_leaky);
  EXPECT_EQ(description.data->place, 7u);
  EXPECT_EQ(description.data->earlier, (std::vector<std::uint64_t>{1, 255}));
  EXPECT_EQ(description.data->earlier_places, std::vector<std::uint64_t>{3});
  EXPECT_EQ(past_training(safetensors::open(path))->seed, 11u);
  EXPECT_EQ(model::to_json(description.graph), model::to_json(graph));
  EXPECT_EQ(kernels_of(safetensors::open(path)), "");

  EXPECT_NE(weights_hash(loaded.program(), loaded.arenas().weights),
            weights_hash(saved.program(), saved.arenas().weights));
  load_weights(safetensors::open(path), loaded.program(), loaded.arenas().weights);
  EXPECT_EQ(weights_hash(loaded.program(), loaded.arenas().weights),
            weights_hash(saved.program(), saved.arenas().weights));
}

TEST(Weights, AreStoredInKerasNamesAndLayout) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "weights.safetensors";
  const model::Graph graph = graph_with(3);
  const auto backend = reference::make_reference_backend(DType::f64);
  const testing::OwnProgram own(*backend, graph, {1});
  initialise_weights(graph, own.program(), 11, own.arenas().weights);
  save_weights(path, {"mine", {"a", "b", "c"}, graph, 11}, own.program(), own.arenas().weights);
  const TensorFile file = safetensors::open(path);
  const auto* kernel = file.find("conv2d/kernel");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->extents, (std::vector<std::size_t>{3, 3, 3, 4}));
  const auto& node = graph.nodes()[1];
  EXPECT_EQ(file.read(*kernel), model::initial_values(node, node.parameters[0], 11));
  ASSERT_NE(file.find("dense/bias"), nullptr);
  EXPECT_EQ(file.find("dense/bias")->extents, std::vector<std::size_t>{3});
}

TEST(Weights, OfAnotherModelAreRefusedByName) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "weights.safetensors";
  const auto backend = reference::make_reference_backend(DType::f32);
  const testing::OwnProgram three(*backend, graph_with(3), {1}), four(*backend, graph_with(4), {1});
  save_weights(path, {"mine", {"a", "b", "c"}, graph_with(3), 0}, three.program(),
               three.arenas().weights);
  try {
    load_weights(safetensors::open(path), four.program(), four.arenas().weights);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_NE(std::string(error.what()).find("dense/kernel is 144x3, not 144x4"), std::string::npos)
        << error.what();
  }
}

TEST(Weights, ThatFitInPartFillThatPart) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "weights.safetensors";
  const model::Graph three = graph_with(3), four = graph_with(4);
  const auto backend = reference::make_reference_backend(DType::f32);
  const testing::OwnProgram saved(*backend, three, {1}), loaded(*backend, four, {1});
  initialise_weights(three, saved.program(), 1, saved.arenas().weights);
  initialise_weights(four, loaded.program(), 2, loaded.arenas().weights);
  save_weights(path, {"mine", {"a", "b", "c"}, three, 1}, saved.program(), saved.arenas().weights);
  const auto head = loaded.program().parameters().to_canonical(2, loaded.arenas().weights);

  const WeightMatch match =
      load_fitting_weights(safetensors::open(path), loaded.program(), loaded.arenas().weights);
  EXPECT_TRUE(match.rows[0].fit == Fit::whole && match.rows[1].fit == Fit::whole);
  EXPECT_EQ(match.count(Fit::other_outputs), 2u);
  EXPECT_EQ(misfit_text(match),
            "2 of another shape (dense/kernel is 144x3, not 144x4, dense/bias is 3, not 4)");
  EXPECT_EQ(loaded.program().parameters().to_canonical(0, loaded.arenas().weights),
            saved.program().parameters().to_canonical(0, saved.arenas().weights));
  EXPECT_EQ(loaded.program().parameters().to_canonical(2, loaded.arenas().weights), head);

  safetensors::write(path, {}, {{"x", {1}, [] { return std::vector{1.0f}; }}});
  EXPECT_THROW(
      load_fitting_weights(safetensors::open(path), loaded.program(), loaded.arenas().weights),
      Error);
}

/// The refusal of weights whose arrays were changed; empty where they are taken.
template <class Change>
std::string refusal_of_changed(const model::Graph& graph, const Change& change) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "w.safetensors";
  std::vector<safetensors::OutTensor> tensors;
  for (const auto& node : graph.nodes()) {
    for (const auto& spec : node.parameters) {
      tensors.push_back({spec.name,
                         {spec.extents.begin(), spec.extents.end()},
                         [count = spec.size()] { return std::vector<float>(count, 1); }});
      change(tensors.back());
    }
  }
  safetensors::write(path, {}, tensors);
  const auto backend = reference::make_reference_backend(DType::f32);
  const testing::OwnProgram own(*backend, graph, {1});
  try {
    const WeightArrays arrays = safetensors::open(path);
    check_outputs_agree(arrays, model::class_outputs(graph));
    open_weights(arrays, graph)("norm/moving_variance");
    load_weights(arrays, own.program(), own.arenas().weights);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    return error.what();
  }
  return "";
}

TEST(Weights, ThatNoTrainingCanMakeAreRefused) {
  model::Graph graph({4, 4, 3});
  graph.add(model::BatchNorm{}, "norm");
  graph.add(model::Flatten{});
  graph.add(model::Dense{3}, "head");
  graph.add(model::SoftmaxCrossEntropy{});
  const auto with_variance = [&](float value) {
    return refusal_of_changed(graph, [&](auto& tensor) {
      if (tensor.name == "norm/moving_variance") {
        tensor.values = [value] { return std::vector<float>{1, value, 1}; };
      }
    });
  };
  EXPECT_EQ(with_variance(0), "");
  const std::string variance = with_variance(-0.5f);
  EXPECT_NE(variance.find("norm/moving_variance holds -0.5"), std::string::npos) << variance;
  const std::string head = refusal_of_changed(graph, [](auto& tensor) {
    if (tensor.name == "head/bias") {
      tensor.extents = {4};
      tensor.values = [] { return std::vector<float>(4, 1); };
    }
  });
  EXPECT_NE(head.find("head/kernel has 3 outputs and head/bias has 4"), std::string::npos) << head;
}

/// A dense layer behind a Flatten has rows for images of one size.
TEST(Weights, OfImagesOfAnotherSizeAreRefusedAsSuch) {
  const std::string text = refusal_of_changed(graph_with(3), [](auto& tensor) {
    if (tensor.name != "dense/kernel") return;
    tensor.extents.front() = 4;
    tensor.values = [] { return std::vector<float>(12, 1); };
  });
  EXPECT_NE(text.find("the weights of dense/kernel fit images of one size alone"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("--image-size"), std::string::npos);
  const std::string other = refusal_of_changed(graph_with(3), [](auto& tensor) {
    if (tensor.name == "dense/kernel") tensor.name = "fc/kernel";
  });
  EXPECT_EQ(other.find("--image-size"), std::string::npos) << other;
}

/// What fits of a file of Keras with another network is no use, so --partial is no advice.
TEST(Weights, OfANetworkOfItsOwnNeedThatNetwork) {
  const auto refusal = [](bool partial, bool other) {
    const model::Graph graph = graph_with(3);
    WeightArrays keras;
    keras.path = "own.keras";
    keras.says_layers = true;
    for (const auto& node : graph.nodes()) {
      for (const auto& spec : node.parameters) {
        StoredArray array = unread_array({other ? "x/" + spec.name : spec.name,
                                          "F32",
                                          {spec.extents.begin(), spec.extents.end()}});
        array.floats = [count = spec.size()] { return std::vector<float>(count, 1); };
        keras.arrays.push_back(array);
      }
    }
    keras.arrays.push_back(unread_array({"more/kernel", "F32", {1}}));
    return testing::refusal_of(ExitCode::data, [&] { check_fits(keras, graph, partial); });
  };
  for (const bool partial : {false, true}) {
    const std::string text = refusal(partial, true);
    EXPECT_NE(text.find("for --model FILE.json"), std::string::npos) << text;
    EXPECT_EQ(text.find("--partial"), std::string::npos) << text;
  }
  // A new head on its layers.
  EXPECT_NE(refusal(false, false).find("--partial"), std::string::npos);
}

TEST(Weights, MessagesNameTheFirstFewOfEachKind) {
  const StoredArray e = unread_array({"e", "F32", {2, 3}}), f = unread_array({"f", "F32", {1}});
  const WeightMatch match{.rows = {{"a"}, {"b"}, {"c"}, {"d"}, {"e", {3, 2}, e, Fit::other_shape}},
                          .extra = {f}};
  EXPECT_EQ(misfit_text(match),
            "4 missing (a, b, c, ...); 1 of another shape (e is 2x3, not 3x2); 1 not in the model "
            "(f)");
}

TEST(ReadDescription, RefusesFilesThatDoNotDescribeAModel) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "weights.safetensors";
  const auto refused = [&](const safetensors::Metadata& metadata) {
    safetensors::write(path, metadata, {});
    try {
      read_description(path);
      return false;
    } catch (const Error& error) {
      return error.code() == ExitCode::data;
    }
  };
  safetensors::Metadata good{
      {"format", "cputrain"}, {"format_version", "1"},
      {"model", "m"},         {"classes", R"(["a","b","c"])"},
      {"seed", "1"},          {"validation_split", "0.1"},
      {"resize", "nearest"},  {"fit", "stretch"},
      {"exif", "ignore"},     {"graph", model::to_json(graph_with(3)).dump()}};
  EXPECT_FALSE(refused(good));
  EXPECT_EQ(read_description(path).resize, data::Resize::nearest);
  EXPECT_EQ(read_description(path).exif, data::Exif::ignore);
  EXPECT_FALSE(read_description(path).data) << "it does not say what training saw";
  good["data"] = "0123456789abcdef";
  EXPECT_FALSE(refused(good));
  EXPECT_EQ(read_description(path).data->fingerprint, 0x0123456789abcdefu);
  EXPECT_EQ(read_description(path).data->place, 0u);
  good["exif"] = "apply";
  good["resize"] = "bilinear";
  good["fit"] = "crop:0.875";
  EXPECT_FALSE(refused(good));
  EXPECT_EQ(read_description(path).resize,
            (data::Resizing{data::Resize::bilinear, {data::Fitting::crop, 8750}}));
  EXPECT_EQ(read_description(path).exif, data::Exif::apply);
  EXPECT_TRUE(refused({}));
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"format", "pt"},
                                                        {"format_version", "9"},
                                                        {"classes", "[1,2,3]"},
                                                        {"classes", R"(["a","b"])"},
                                                        {"classes", "{"},
                                                        {"graph", "{"},
                                                        {"graph", std::string(100, '[')},
                                                        {"classes", R"({"a":1,"a":2})"},
                                                        {"classes", R"(["a","b","a"])"},
                                                        {"classes", R"(["a","b",""])"},
                                                        {"classes", "[\"a\",\"b\",\"\xe9\"]"},
                                                        {"resize", "cubic"},
                                                        {"fit", "crop:9"},
                                                        {"exif", "maybe"},
                                                        {"data", "12"},
                                                        {"data", "0123456789abcdeg"},
                                                        {"expand", "seven"},
                                                        {"seed", "one"},
                                                        {"validation_split", "none"}}) {
    auto bad = good;
    bad[key] = value;
    EXPECT_TRUE(refused(bad)) << key << " " << value;
  }
  for (const auto& [key, value] : safetensors::Metadata(good)) {
    auto bad = good;
    bad.erase(key);
    EXPECT_EQ(refused(bad), key != "data") << key;
  }
  good["classes"] = R"(["tab\tname","line\nend","\u001b[2J"])";  // whatever a folder may be called
  EXPECT_FALSE(refused(good));
  EXPECT_EQ(read_description(path).classes,
            (std::vector<std::string>{"tab\tname", "line\nend", "\x1b[2J"}));
}

}  // namespace
}  // namespace cputrain::weights
