#include "tests/golden/model_figures.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "model/rewrite.h"
#include "tests/support/test_data.h"
#include "zoo/zoo.h"

namespace cputrain::golden {
namespace {

using Json = nlohmann::json;

Sums sums_of(const Json& row) { return {row.at(0), row.at(1)}; }

FloatError error_of(const Json& json) {
  return {json.at("loss"), json.at("logits"), json.at("moving"), json.at("whole"),
          json.at("worst")};
}

TrainingPass pass_of(const Json& json) {
  TrainingPass pass{.first = json.at("first"),
                    .batch = json.at("batch"),
                    .frozen = json.at("frozen"),
                    .loss = json.at("loss"),
                    .correct = json.at("correct"),
                    .logits = json.at("logits"),
                    .tensors = {},
                    .pytorch = error_of(json.at("float_errors"))};
  if (!json.contains("tensors")) return pass;
  for (const Json& row : json.at("tensors")) {
    pass.tensors.push_back(row.is_null() ? std::nullopt : std::optional(sums_of(row)));
  }
  return pass;
}

ModelTraining training_of(const Json& json) {
  ModelTraining training{{optim::Sgd{.momentum = json.at("momentum")}, json.at("rate")},
                         json.at("batch"),
                         json.at("losses"),
                         {}};
  for (const Json& row : json.at("changes")) training.changes.push_back(sums_of(row));
  return training;
}

}  // namespace

ModelFigures load_model(const std::string& name) {
  const Json json = Json::parse(testing::test_data("golden/models/" + name + ".json"));
  const auto& size = json.at("image");
  const int classes = json.at("classes");
  const Json& evaluation = json.at("evaluation");
  const model::Graph built = zoo::find_model(name)->build({size[0], size[1], size[2]}, classes);
  // Figures are of pixels from 0 to 1, whatever the network's weights were trained with.
  ModelFigures figures{.graph = model::with_input(model::with_dropout(built, 0), model::Input{}),
                       .classes = classes,
                       .seed = json.at("seed"),
                       .parameters = json.at("parameters"),
                       .passes = {},
                       .pytorch = error_of(json.at("worst_float_errors")),
                       .evaluation = {evaluation.at("first"), evaluation.at("batch"),
                                      evaluation.at("logits"), evaluation.at("float_error")},
                       .trainings = {}};
  for (const Json& row : json.at("passes")) figures.passes.push_back(pass_of(row));
  for (const Json& row : json.at("trainings")) figures.trainings.push_back(training_of(row));
  return figures;
}

std::vector<double> logits_from(std::span<const float> probabilities, int images, int classes) {
  const bool one_column = static_cast<int>(probabilities.size()) == images;
  std::vector<double> logits;
  for (const double p : probabilities) {
    if (one_column) logits.push_back(std::log1p(-p));
    logits.push_back(std::log(p));
  }
  centre(logits, classes);
  return logits;
}

void centre(std::vector<double>& logits, int classes) {
  for (std::size_t i = 0; i < logits.size(); i += static_cast<std::size_t>(classes)) {
    const auto image = std::span(logits).subspan(i, static_cast<std::size_t>(classes));
    const double mean = std::accumulate(image.begin(), image.end(), 0.0) / classes;
    for (double& logit : image) logit -= mean;
  }
}

}  // namespace cputrain::golden
