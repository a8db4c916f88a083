#include "tests/golden/golden_file.h"

#include <nlohmann/json.hpp>

#include "model/rewrite.h"
#include "tests/support/test_data.h"
#include "zoo/zoo.h"

namespace cputrain::golden {
namespace {

using Json = nlohmann::json;

std::vector<Digest> digests(const Json& rows) {
  std::vector<Digest> result;
  for (const auto& row : rows) {
    result.push_back(
        {row.at("name"), row.at("norm"), row.at("dot"), row.at("at"), row.at("values")});
  }
  return result;
}

optim::UpdateRule rule_of(const Json& run) {
  const std::string name = run.at("rule");
  if (name == "sgd")
    return optim::Sgd{.momentum = run.at("momentum"), .nesterov = run.at("nesterov")};
  if (name == "rmsprop") {
    return optim::RmsProp{.momentum = run.at("momentum"), .centered = run.at("centered")};
  }
  return optim::Adam{};
}

/// Every kind of layer, `same` padding with odd amounts, strides: layers_net() of make_golden.py.
model::Graph layers_net(Shape image, int classes) {
  model::Graph graph(image);
  graph.add(model::Convolution{.filters = 8, .kernel = 3, .padding = model::Padding::same});
  graph.add(model::Relu{});
  graph.add(model::AveragePool{});
  graph.add(
      model::Convolution{.filters = 12, .kernel = 5, .stride = 2, .padding = model::Padding::same});
  graph.add(model::Relu{});
  graph.add(model::MaxPool{.size = 3, .stride = 2, .padding = model::Padding::same});
  graph.add(model::Convolution{.filters = 10, .kernel = 3});
  graph.add(model::Relu{});
  graph.add(model::AveragePool{.size = 3, .stride = 2, .padding = model::Padding::same});
  graph.add(model::GlobalAveragePool{});
  graph.add(model::Dense{7});
  graph.add(model::Relu{});
  graph.add(model::Dense{classes});
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

}  // namespace

File load(const std::string& name) {
  const Json json = Json::parse(testing::test_data("golden/" + name + ".json"));
  const auto& size = json.at("image");
  const Shape image{size[0], size[1], size[2]};
  const int classes = json.at("classes");
  File file{.graph = name == "dogcat"
                         ? model::with_dropout(zoo::find_model(name)->build(image, classes), 0)
                         : layers_net(image, classes),
            .classes = classes,
            .batch = json.at("batch"),
            .seed = json.at("seed"),
            .start = digests(json.at("start")),
            .first = digests(json.at("first")),
            .trainings = {},
            .float_batch = json.at("float_errors").at("batch"),
            .float_errors = {}};
  for (const auto& run : json.at("runs")) {
    file.trainings.push_back({run.at("name"),
                              {rule_of(run), run.at("rate")},
                              run.at("losses"),
                              run.at("correct"),
                              digests(run.at("last")),
                              digests(run.at("weights"))});
  }
  for (const auto& batch : json.at("float_errors").at("batches")) {
    file.float_errors.push_back(batch.at("tensors"));
  }
  return file;
}

Digest digest(const Digest& like, const std::vector<double>& tensor, std::uint64_t seed,
              int index) {
  const Sums all = sums(tensor, seed, static_cast<std::uint32_t>(index));
  Digest result{like.name, all.norm, all.dot, like.at, {}};
  for (const std::size_t i : like.at) result.values.push_back(tensor.at(i));
  return result;
}

Samples samples(const File& file, int first, int count) {
  return {file.graph.image(), file.classes, file.seed, first, count};
}

}  // namespace cputrain::golden
