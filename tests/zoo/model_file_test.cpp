#include "zoo/model_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "core/error.h"
#include "model/model_json.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"
#include "training/request/choose_training.h"

namespace cputrain::zoo {
namespace {

using nlohmann::json;

class ModelFile : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const auto path = folder_.path() / name;
    std::ofstream(path) << text;
    return path.string();
  }

  /// What reading the text ends with; success has no words.
  std::string refusal(const std::string& text) {
    return testing::refusal_of(ExitCode::data, [&] { find_model(write("refused.json", text)); });
  }

  testing::TemporaryFolder folder_;
};

/// A network whose last dense layer has `units` (a number, or "classes" in quotes).
std::string small_model(const std::string& units, const std::string& loss = "softmax") {
  return R"({"format": "cputrain model 1", "name": "small", "recipe": {"image_size": 8},
             "layers": [{"type": "flatten"}, {"type": "dense", "units": )" +
         units + R"(}, {"type": ")" + loss + R"("}]})";
}

TEST_F(ModelFile, ABuiltInModelComesBackWholeButForItsName) {
  for (const ModelEntry& entry : model_zoo()) {
    SCOPED_TRACE(entry.name);
    const Shape image{64, 64, 3};
    if (entry.name == "nature7") continue;  // 64 pixels are too few for it
    const auto path = write(entry.name + ".json", model_file_text(entry, image, 7));
    const auto back = find_model(path);
    EXPECT_EQ(back->name, "my-" + entry.name);
    EXPECT_EQ(back->spec(), path);
    Recipe expected = entry.recipe;
    expected.image_size = 64;
    expected.classes = 7;
    EXPECT_EQ(recipe_json(back->recipe), recipe_json(expected));
    EXPECT_EQ(back->recipe.rule.index(), entry.recipe.rule.index());
    for (const int classes : {3, 12}) {
      EXPECT_EQ(model::to_json(back->build(image, classes)),
                model::to_json(entry.build(image, classes)));
    }
  }
}

TEST_F(ModelFile, EveryFigureOfARecipeIsKept) {
  const std::vector<optim::UpdateRule> rules{
      optim::Sgd{.momentum = 0.5, .nesterov = true},
      optim::RmsProp{.rho = 0.8, .epsilon = 1e-3, .centered = true}, optim::Adam{.epsilon = 1e-4},
      optim::Lars{.trust = 0.02}, optim::Lamb{.epsilon = 1e-5}};
  for (const optim::UpdateRule& rule : rules) {
    const Recipe recipe{.image_size = 32,
                        .classes = 5,
                        .batch = 96,
                        .epochs = 3,
                        .rule = rule,
                        .learning_rate = 0.25,
                        .weight_decay = 1e-4,
                        .schedule = optim::parse_schedule("step:2:0.1"),
                        .shuffle = false,
                        .drop_last = true,
                        .augment = data::parse_augment("flip,crop:4"),
                        .source = "here"};
    const json written = json::parse(recipe_json(recipe).dump());
    const Recipe back = read_recipe({written, "test", "(it is a test)"}, "here");
    EXPECT_EQ(recipe_json(back).dump(), recipe_json(recipe).dump());
    EXPECT_GT(written.size(), 11u);  // nothing was left out as a default
  }
}

TEST_F(ModelFile, FixedOutputsAreTheRecipesClasses) {
  EXPECT_EQ(find_model(write("a.json", small_model("7")))->recipe.classes, 7);
  EXPECT_EQ(find_model(write("b.json", small_model("1", "sigmoid")))->recipe.classes, 2);
  EXPECT_EQ(find_model(write("c.json", small_model("\"classes\"")))->recipe.classes, 10);
}

TEST_F(ModelFile, OutputsMustBeThoseOfTheLabels) {
  training::TrainingFlags flags;
  flags.model = write("two.json", small_model("2"));
  const training::TrainingSpec spec = training::choose_training(flags);
  EXPECT_NO_THROW(training::build_graph(spec, 2));
  for (const int classes : {3, 4}) {
    EXPECT_THROW(training::build_graph(spec, classes), Error);
  }
  flags.model = write("one.json", small_model("1", "sigmoid"));
  EXPECT_THROW(training::build_graph(training::choose_training(flags), 4), Error);
  flags.model = write("open.json", small_model("\"classes\""));
  EXPECT_NO_THROW(training::build_graph(training::choose_training(flags), 4));
}

/// Each advice, followed, gives a network that is taken.
TEST_F(ModelFile, AdviceOnOutputsLeadsToAModel) {
  const auto advice = [&](const std::string& text, int classes) -> std::string {
    training::TrainingFlags flags;
    try {
      flags.model = write("advised.json", text);
      training::build_graph(training::choose_training(flags), classes);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto expect = [&](const std::string& told, const std::vector<std::string>& words) {
    for (const std::string& word : words) EXPECT_NE(told.find(word), std::string::npos) << told;
  };
  expect(advice(small_model("1", "sigmoid"), 3),
         {R"(write "units": "classes")", R"("softmax" in place of "sigmoid")"});
  expect(advice(small_model("2"), 3), {R"(write "units": "classes")"});
  EXPECT_EQ(advice(small_model("\"classes\""), 3), "");
  expect(advice(small_model("\"classes\"", "sigmoid"), 2), {R"("units": 1)", R"("softmax")"});
  EXPECT_EQ(advice(small_model("1", "sigmoid"), 2), "");
  expect(advice(small_model("1"), 2), {R"("units": "classes")"});
  EXPECT_EQ(advice(small_model("\"classes\""), 2), "");
}

TEST_F(ModelFile, MistakesAreNamed) {
  EXPECT_NE(refusal("{").find("not valid JSON"), std::string::npos);
  EXPECT_NE(refusal("{}").find("format is missing"), std::string::npos);
  json file = json::parse(small_model("3"));
  const auto changed = [&](const auto& change) {
    json copy = file;
    change(copy);
    return refusal(copy.dump());
  };
  EXPECT_NE(changed([](json& f) { f["name"] = "../x"; }).find("name must be"), std::string::npos);
  EXPECT_NE(changed([](json& f) { f["name"] = "paper"; }).find("built-in"), std::string::npos);
  EXPECT_NE(changed([](json& f) { f["layer"] = 1; }).find("layer"), std::string::npos);
  EXPECT_NE(changed([](json& f) { f["recipe"]["optimizer"] = "adagrad"; }).find("lamb"),
            std::string::npos);
  EXPECT_NE(changed([](json& f) { f["recipe"]["rho"] = 0.5; }).find("rho does not go with sgd"),
            std::string::npos);
  EXPECT_NE(changed([](json& f) { f["recipe"]["schedule"] = "stairs"; }).find("stairs"),
            std::string::npos);
  EXPECT_NE(changed([](json& f) { f["input"]["channels"] = 1; }).find("channels"),
            std::string::npos);
  EXPECT_NE(changed([](json& f) { f["layers"][1]["unit"] = 1; }).find("unit"), std::string::npos);
  EXPECT_NE(changed([](json& f) {
              f["layers"][1]["from"] = {{"x", "input"}};
            }).find("from"),
            std::string::npos);
  const std::string type = changed([](json& f) { f["layers"][1]["type"] = "densely"; });
  EXPECT_NE(type.find("is none of convolution, max_pool"), std::string::npos) << type;
  EXPECT_NE(type.find("did you mean dense?"), std::string::npos) << type;
  const std::string padding = changed([](json& f) {
    f["layers"][1] = {{"type", "max_pool"}, {"size", 2}, {"padding", 1}, {"name", "half"}};
  });
  EXPECT_NE(padding.find("layer 2 (half): padding must be \"valid\""), std::string::npos)
      << padding;
  const auto unread = [](json& f) {
    f["layers"].insert(f["layers"].begin(), json::object({{"type", "relu"}}));
    f["layers"][1]["from"] = "input";
  };
  EXPECT_NE(changed(unread).find("read by no other"), std::string::npos);
}

TEST_F(ModelFile, NullIsNoValueOfAField) {
  const auto with_null = [&](const char* pointer) {
    json file = json::parse(small_model("3"));
    file[json::json_pointer(pointer)] = nullptr;
    return refusal(file.dump());
  };
  const auto expect = [&](const char* pointer, const std::string& words) {
    const std::string message = with_null(pointer);
    EXPECT_NE(message.find(words), std::string::npos) << pointer << ": " << message;
  };
  expect("/name", ": name must be a text");
  expect("/recipe", ", recipe: is not an object");
  expect("/recipe/batch", ", recipe: batch must be a whole number from 1 to");
  expect("/recipe/shuffle", ", recipe: shuffle must be true or false");
  expect("/recipe/classes", ", recipe: classes must be a whole number");
  expect("/input", ", input: is not an object");
  expect("/input/scale", ", input: scale must be a number");
  expect("/layers", ": layers must be a list");
  expect("/layers/1/units", ", layer 2: units must be a whole number");
  expect("/layers/1/bias", ", layer 2: bias must be true or false");
  expect("/layers/1/name", ", layer 2: name must be a text");
  expect("/layers/1/from", ", layer 2: from must name earlier layers");
}

/// A network of so many layers: ReLUs before the two that count.
std::string deep_model(int layers) {
  std::string text = R"({"format": "cputrain model 1", "name": "deep", "recipe": {"image_size": 8},
                         "layers": [)";
  for (int i = 3; i < layers; ++i) text += R"({"type": "relu"},)";
  return text + R"({"type": "flatten"}, {"type": "dense", "units": 2}, {"type": "softmax"}]})";
}

TEST_F(ModelFile, HasTenThousandLayersAtMost) {
  EXPECT_EQ(refusal(deep_model(10'000)), "");
  EXPECT_NE(refusal(deep_model(10'001)).find("1 to 10000 layers"), std::string::npos);
  EXPECT_NE(refusal(deep_model(200'000)).find("1 to 10000 layers"), std::string::npos);
  EXPECT_NE(refusal(std::string((16 << 20) + 1, ' ')).find("is larger than"), std::string::npos);
}

TEST_F(ModelFile, WaitsForNoPipe) {
  const auto path = folder_.path() / "pipe.json";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(find_model(path.string()), Error);
}

}  // namespace
}  // namespace cputrain::zoo
