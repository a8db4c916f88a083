// Weights of other classes, or of the same in another order.
#include "weights/weight_match.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "backends/reference/reference_backend.h"
#include "core/error.h"
#include "tests/support/own_program.h"
#include "tests/support/temporary_folder.h"
#include "weights/description.h"
#include "weights/load.h"

namespace cputrain::weights {
namespace {

using Names = std::vector<std::string>;
using Source = std::vector<std::optional<std::size_t>>;

TEST(MatchClasses, ByNameThenByWhatIsLeft) {
  const auto match = [](const Names& data, const Names& file) {
    return match_classes(data, file, data.size());
  };
  EXPECT_FALSE(match({"a", "b"}, {"a", "b"}).moves());
  EXPECT_EQ(match({"c", "a", "b"}, {"a", "b", "c"}).source, (Source{2, 0, 1}));
  EXPECT_TRUE(match({"c", "a", "b"}, {"a", "b", "c"}).others.empty());
  // b has its own output, so zzz begins with that of a.
  const ClassMatch renamed = match({"b", "zzz"}, {"a", "b"});
  EXPECT_EQ(renamed.source, (Source{1, 0}));
  EXPECT_EQ(renamed.by_name, 1u);
  EXPECT_EQ(renamed.others, std::vector<std::size_t>{1});
  EXPECT_FALSE(match({"x", "y"}, {"a", "b"}).moves()) << "places that are free stay";
  EXPECT_EQ(match({"x", "b", "q"}, {"b", "c", "a"}).source, (Source{1, 0, 2}));
  // More or fewer: those that both have.
  EXPECT_EQ(match({"a", "b", "c"}, {"c", "a"}).source, (Source{1, std::nullopt, 0}));
  EXPECT_EQ(match({"a", "b"}, {"x", "b", "a"}).source, (Source{2, 1}));
}

TEST(MatchClasses, MadeUpNamesStandForAny) {
  const ClassMatch padded =
      match_classes(Names{"cat", "dog", "class 2"}, Names{"class 0", "class 1", "class 2"}, 2);
  EXPECT_FALSE(padded.moves());
  EXPECT_TRUE(padded.others.empty());
  EXPECT_EQ(match_classes(Names{"cat", "class 1"}, Names{"dog", "cat"}, 1).source, (Source{1, 0}));
  EXPECT_TRUE(match_classes(Names{"cat", "class 1"}, Names{"dog", "cat"}, 1).others.empty());
  // As of a folder "class 1" beside a class without a name.
  const Names odd{"cat", "class 1", "class 2 (no name)"};
  EXPECT_TRUE(match_classes(odd, Names{"cat", "class 1", "cow"}, 2).others.empty());
  EXPECT_TRUE(match_classes(Names{"cat", "class 1", "cow"}, odd, 3).others.empty());
}

TEST(MatchClasses, FoldersThatAreCalledLikeMadeUpNamesAreNone) {
  using Others = std::vector<std::size_t>;
  const auto others = [](const Names& data, std::size_t named) {
    return match_classes(data, Names{"cat", "dog"}, named).others;
  };
  EXPECT_EQ(others({"class 0", "class 1"}, 2), (Others{0, 1}));
  EXPECT_EQ(others({"class 0", "class 1"}, 1), (Others{0}));
  EXPECT_EQ(others({"class 0", "class 1"}, 0), Others{});
  EXPECT_EQ(others({"class 7", "cat"}, 2), (Others{0}));
}

model::Graph headed(const std::vector<model::Layer>& head, int width = 6) {
  model::Graph graph({5, 4, 3});
  graph.add(model::Convolution{width, 3});
  graph.add(model::Relu{});
  for (const model::Layer& layer : head) graph.add(layer);
  return graph;
}

/// Heads of networks with so many outputs that let them be put by name. One output cannot be turned
/// round in front of a bend.
std::map<std::string, model::Graph> heads(int outputs) {
  const model::Layer loss = outputs == 1 ? model::Layer(model::SigmoidCrossEntropy{})
                                         : model::Layer(model::SoftmaxCrossEntropy{});
  std::map<std::string, model::Graph> heads{
      {"dense", headed({model::Flatten{}, model::Dense{outputs}, loss})},
      {"no bias", headed({model::Flatten{}, model::Dense{.units = outputs, .bias = false},
                          model::Dropout{0.5f}, loss})},
      {"squeezed", headed({model::Convolution{outputs, 1}, model::AveragePool{2, 1},
                           model::GlobalAveragePool{}, loss})},
      {"normalised", headed({model::Convolution{outputs, 1}, model::BatchNorm{},
                             model::GlobalAveragePool{}, model::Flatten{}, loss})},
  };
  if (outputs > 1) {
    heads.emplace("capped", headed({model::Convolution{outputs, 1}, model::Relu6{}, model::Silu{},
                                    model::GlobalAveragePool{}, loss}));
  }
  return heads;
}

TEST(ClassOutputs, AreFoundThroughWhatKeepsChannelsApart) {
  const auto arrays = [](const model::Graph& graph) { return model::class_outputs(graph).arrays; };
  EXPECT_EQ(arrays(heads(3).at("dense")), (Names{"dense/kernel", "dense/bias"}));
  EXPECT_EQ(arrays(heads(3).at("normalised")).size(), 6u);
  EXPECT_TRUE(model::class_outputs(heads(3).at("dense")).negated.empty());
  EXPECT_EQ(model::class_outputs(heads(1).at("normalised")).negated,
            (Names{"batch_normalization/gamma", "batch_normalization/beta"}));
  const model::SoftmaxCrossEntropy softmax;
  const model::Graph bent =
      headed({model::GlobalAveragePool{}, model::Dense{3}, model::Relu{}, softmax});
  EXPECT_EQ(arrays(bent).size(), 2u);
  for (const model::Layer& bend :
       std::vector<model::Layer>{model::Relu{}, model::Relu6{}, model::LeakyRelu{}, model::Silu{},
                                 model::MaxPool{1, 1}}) {
    const model::Graph bent_sigmoid = headed(
        {model::Convolution{1, 1}, bend, model::GlobalAveragePool{}, model::SigmoidCrossEntropy{}});
    EXPECT_EQ(arrays(bent_sigmoid).size(), 2u);
    EXPECT_TRUE(model::class_outputs(bent_sigmoid).negated.empty());
  }
  EXPECT_TRUE(arrays(headed({model::Convolution{2, 2}, model::Flatten{}, softmax})).empty());
  // A run of its filters reads a run of the channels.
  const model::Convolution grouped{.filters = 3, .kernel = 1, .groups = 3};
  EXPECT_TRUE(arrays(headed({grouped, model::GlobalAveragePool{}, softmax})).empty());
  model::Graph joined = headed({model::GlobalAveragePool{}}, 3);
  const int part = joined.add(model::Dense{2});
  joined.add(model::Concat{}, "both", {part, part});
  joined.add(softmax);
  EXPECT_TRUE(arrays(joined).empty());
  model::Graph summed = headed({model::GlobalAveragePool{}}, 3);
  const int read_twice = summed.add(model::Dense{3});
  summed.add(model::Dense{3});
  summed.add(model::Add{}, "sum", {read_twice, read_twice + 1});
  summed.add(softmax);
  EXPECT_TRUE(arrays(summed).empty());
}

/// Probabilities of an image by the names of classes.
std::map<std::string, double> predictions(compute::Program& program, const Names& classes) {
  std::vector<std::uint8_t> pixels(5 * 4 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 37);
  const std::uint8_t* image = pixels.data();
  const std::int32_t label = 0;
  const std::uint32_t sample = 0;
  program.forward({{&image, 1}, {&label, 1}, {&sample, 1}}, {.probabilities = true});
  const auto outputs = program.probabilities();
  if (outputs.size() == 1) return {{classes[0], 1 - outputs[0]}, {classes[1], outputs[0]}};
  std::map<std::string, double> by_name;
  for (std::size_t c = 0; c < classes.size(); ++c) by_name[classes[c]] = outputs[c];
  return by_name;
}

/// Weights that tell all outputs apart, biases and statistics included.
void fill(const model::Graph& graph, const compute::Program& program, const Array& weights) {
  initialise_weights(graph, program, 3, weights);
  for (std::size_t p = 0; p < program.layout().parameters.size(); ++p) {
    auto values = program.parameters().to_canonical(p, weights);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] += 0.02 + 0.01 * static_cast<double>(i % 7);
    program.parameters().from_canonical(p, values, weights);
  }
}

class Permuted : public ::testing::Test {
 protected:
  void save(const model::Graph& graph, const Names& classes) {
    const testing::OwnProgram saved(*backend_, graph, {1});
    fill(graph, saved.program(), saved.arenas().weights);
    save_weights(path_, {"mine", classes, graph, 3}, saved.program(), saved.arenas().weights);
    before_ = predictions(saved.program(), classes);
  }

  ClassRows rows(const model::Graph& graph, const Names& classes) const {
    const Names file = classes_of_weights(safetensors::open(path_));
    return {model::class_outputs(graph), match_classes(classes, file, classes.size()).source,
            file.size()};
  }

  const testing::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "weights.safetensors";
  const std::unique_ptr<compute::Backend> backend_ = reference::make_reference_backend(DType::f64);
  std::map<std::string, double> before_;
};

TEST_F(Permuted, NetworksAnswerTheSameByName) {
  const std::vector<std::pair<Names, Names>> orders{{Names{"a", "b", "c"}, Names{"b", "c", "a"}},
                                                    {Names{"b", "a", "c"}, Names{"a", "b", "c"}},
                                                    {Names{"b", "a"}, Names{"a", "b"}}};
  for (const auto& [file, data] : orders) {
    for (const auto& [name, graph] : heads(static_cast<int>(file.size()))) {
      save(graph, file);
      const testing::OwnProgram loaded(*backend_, graph, {1});
      load_weights(safetensors::open(path_), loaded.program(), loaded.arenas().weights,
                   rows(graph, data));
      for (const auto& [label, probability] : predictions(loaded.program(), data)) {
        EXPECT_NEAR(probability, before_.at(label), 1e-6) << name << " " << label;
      }
      load_weights(safetensors::open(path_), loaded.program(), loaded.arenas().weights);
      double most = 0;
      for (const auto& [label, probability] : predictions(loaded.program(), data)) {
        most = std::max(most, std::abs(probability - before_.at(label)));
      }
      EXPECT_GT(most, 1e-3) << name << ": this case could not fail";
    }
  }
}

TEST_F(Permuted, OneOutputIsTurnedRound) {
  for (const auto& [name, graph] : heads(1)) {
    save(graph, {"dog", "cat"});
    const testing::OwnProgram loaded(*backend_, graph, {1});
    const Names data{"cat", "dog"};
    load_weights(safetensors::open(path_), loaded.program(), loaded.arenas().weights,
                 rows(graph, data));
    const auto after = predictions(loaded.program(), data);
    EXPECT_NEAR(after.at("cat"), before_.at("cat"), 1e-6) << name;
    EXPECT_GT(std::abs(before_.at("cat") - before_.at("dog")), 1e-3) << name;
  }
}

TEST_F(Permuted, MoreOrFewerClassesTakeThoseThatBothHave) {
  const model::Graph three = heads(3).at("dense"), four = heads(4).at("dense"),
                     two = heads(2).at("dense");
  save(three, {"a", "b", "c"});
  const auto column = [](const compute::Program& program, const Array& weights,
                         std::size_t parameter, std::size_t columns, std::size_t c) {
    const auto values = program.parameters().to_canonical(parameter, weights);
    std::vector<double> result;
    for (std::size_t i = c; i < values.size(); i += columns) result.push_back(values[i]);
    return result;
  };
  const testing::OwnProgram stored(*backend_, three, {1});
  load_weights(safetensors::open(path_), stored.program(), stored.arenas().weights);
  const std::vector<std::tuple<model::Graph, Names, Source>> cases{
      {four, Names{"c", "x", "a", "y"}, Source{2, std::nullopt, 0, std::nullopt}},
      {two, Names{"c", "b"}, Source{2, 1}}};
  for (const auto& [graph, data, source] : cases) {
    const testing::OwnProgram loaded(*backend_, graph, {1}), first(*backend_, graph, {1});
    for (const testing::OwnProgram* program : {&loaded, &first}) {
      initialise_weights(graph, program->program(), 9, program->arenas().weights);
    }
    const WeightMatch result = load_fitting_weights(safetensors::open(path_), loaded.program(),
                                                    loaded.arenas().weights, rows(graph, data));
    EXPECT_EQ(result.named(Fit::common_classes), (Names{"dense/kernel", "dense/bias"}));
    EXPECT_TRUE(result.whole());
    for (const std::size_t p : {2u, 3u}) {
      for (std::size_t c = 0; c < data.size(); ++c) {
        const auto expected =
            source[c] ? column(stored.program(), stored.arenas().weights, p, 3, *source[c])
                      : column(first.program(), first.arenas().weights, p, data.size(), c);
        EXPECT_EQ(column(loaded.program(), loaded.arenas().weights, p, data.size(), c), expected);
      }
    }
  }
}

TEST_F(Permuted, OneOutputAndSeveralHaveNoColumnInCommon) {
  save(heads(1).at("dense"), {"a", "b"});
  const model::Graph three = heads(3).at("dense");
  const testing::OwnProgram loaded(*backend_, three, {1});
  const WeightMatch result =
      load_fitting_weights(safetensors::open(path_), loaded.program(), loaded.arenas().weights,
                           rows(three, {"a", "b", "c"}));
  EXPECT_EQ(result.count(Fit::common_classes), 0u);
  EXPECT_EQ(result.count(Fit::other_outputs), 2u);
}

/// Names are told by the file, and so may be more or fewer than its arrays have columns.
TEST_F(Permuted, NamesThatAreNotThoseOfTheOutputsAreRefused) {
  for (const auto& [outputs, named, data] :
       {std::tuple{3, Names{"e", "d", "c", "b", "a"}, Names{"a", "b", "c"}},
        {3, Names{"b", "a"}, Names{"a", "b", "c"}},
        {1, Names{"c", "b", "a"}, Names{"a", "b"}},
        {1, Names{"b"}, Names{"a", "b"}}}) {
    for (const auto& [name, graph] : heads(outputs)) {
      const testing::OwnProgram saved(*backend_, graph, {1}), loaded(*backend_, graph, {1});
      fill(graph, saved.program(), saved.arenas().weights);
      save_weights(path_, {"mine", named, graph, 3}, saved.program(), saved.arenas().weights);
      const TensorFile file = safetensors::open(path_);
      try {
        load_weights(file, loaded.program(), loaded.arenas().weights, rows(graph, data));
        ADD_FAILURE() << name;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data);
        const std::string words = "names " + std::to_string(named.size()) +
                                  (named.size() == 1 ? " class for " : " classes for ") +
                                  std::to_string(outputs) + " output";
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      }
      // In part: as they lie there, since the names say nothing about these columns.
      load_fitting_weights(file, loaded.program(), loaded.arenas().weights, rows(graph, data));
      EXPECT_EQ(weights_hash(loaded.program(), loaded.arenas().weights),
                weights_hash(saved.program(), saved.arenas().weights))
          << name;
    }
  }
}

TEST_F(Permuted, ArraysThatHoldNaNAreNamed) {
  const model::Graph graph = heads(3).at("dense");
  const testing::OwnProgram own(*backend_, graph, {1});
  fill(graph, own.program(), own.arenas().weights);
  for (const auto& [parameter, value] : {std::pair(0u, std::nan("")), std::pair(3u, -HUGE_VAL)}) {
    auto values = own.program().parameters().to_canonical(parameter, own.arenas().weights);
    values.back() = value;
    own.program().parameters().from_canonical(parameter, values, own.arenas().weights);
  }
  save_weights(path_, {"mine", {"a", "b", "c"}, graph, 3}, own.program(), own.arenas().weights);
  const WeightMatch loaded =
      load_weights(safetensors::open(path_), own.program(), own.arenas().weights);
  EXPECT_EQ(loaded.nonfinite, (Names{"conv2d/kernel", "dense/bias"}));
  EXPECT_EQ(nonfinite_text("w", loaded.nonfinite, 4),
            "weight file w: 2 of 4 parameter arrays hold NaN or infinity: conv2d/kernel, "
            "dense/bias");
  EXPECT_EQ(nonfinite_text("w", {}, 4), "");
}

}  // namespace
}  // namespace cputrain::weights
