#include "scaling/simulation/gpu/gpu_costs.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "core/text.h"
#include "scaling/simulation/json_file.h"

namespace cputrain::simulation {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kGpuCostsFormat = "cputrain gpu costs 1";
constexpr std::size_t kMostGpuSteps = 100'000, kMostGpuLayers = 10'000;
constexpr double kMostSeconds = 1e6;

constexpr std::array<std::pair<GpuCostKind, const char*>, 3> kKinds{
    {{GpuCostKind::predicted, "predicted"},
     {GpuCostKind::measured, "measured"},
     {GpuCostKind::published, "published"}}};

GpuCostKind kind_from(const JsonObject& json) {
  const std::string word = json.text("kind");
  for (const auto& [kind, name] : kKinds) {
    if (word == name) return kind;
  }
  json.wrong("kind must be predicted, measured or published");
}

std::vector<GpuLayerCost> layers_from(const JsonObject& json) {
  std::vector<GpuLayerCost> layers;
  for (const JsonObject& layer : json.objects("layers", kMostGpuLayers)) {
    layer.allow_only({"name", "forward", "backward"});
    layers.push_back({layer.text("name"), layer.real("forward", 0, kMostSeconds),
                      layer.real("backward", 0, kMostSeconds)});
  }
  return layers;
}

double layer_seconds(const GpuStepCost& step) {
  double seconds = 0;
  for (const GpuLayerCost& layer : step.layers) seconds += layer.forward + layer.backward;
  return seconds;
}

GpuStepCost step_from(const JsonObject& json) {
  json.allow_only({"gpu", "model", "image_size", "parameters", "precision", "batch", "micro_batch",
                   "seconds", "images_per_second", "update", "layers"});
  GpuStepCost step;
  step.gpu = json.text("gpu");
  step.model = json.text("model");
  step.image_size = json.whole("image_size", 1, 16384);
  if (json.has("parameters")) step.parameters = json.real("parameters", 0, 1e15);
  step.precision = json.text("precision");
  step.batch = json.whole("batch", 1, 1 << 24);
  step.micro_batch =
      json.has("micro_batch") ? json.whole("micro_batch", 1, step.batch) : step.batch;
  if (json.has("seconds") == json.has("images_per_second")) {
    json.wrong("must have either seconds or images_per_second");
  }
  step.seconds = json.has("seconds") ? json.real("seconds", 1e-9, kMostSeconds)
                                     : step.batch / json.real("images_per_second", 1e-3, 1e12);
  if (json.has("update")) step.update = json.real("update", 0, kMostSeconds);
  if (json.has("layers")) step.layers = layers_from(json);
  constexpr double kRounding = 1 + 1e-6;
  if (layer_seconds(step) + step.update > step.seconds * kRounding) {
    json.wrong("seconds must not be less than those of layers and update together");
  }
  return step;
}

Json to_json(const GpuStepCost& step) {
  Json json{{"gpu", step.gpu},
            {"model", step.model},
            {"image_size", step.image_size},
            {"precision", step.precision},
            {"batch", step.batch},
            {"micro_batch", step.micro_batch},
            {"seconds", step.seconds},
            {"update", step.update}};
  if (step.parameters > 0) json["parameters"] = step.parameters;
  for (const GpuLayerCost& layer : step.layers) {
    json["layers"].push_back(
        {{"name", layer.name}, {"forward", layer.forward}, {"backward", layer.backward}});
  }
  return json;
}

}  // namespace

std::string to_text(GpuCostKind kind) {
  for (const auto& [one, name] : kKinds) {
    if (one == kind) return name;
  }
  return "";
}

std::string GpuCosts::origin() const {
  std::string text = to_text(kind);
  if (!date.empty()) text += " on " + date;
  if (!commit.empty()) text += " by commit " + commit;
  return text + ": " + source;
}

Json to_json(const GpuCosts& costs) {
  Json steps = Json::array();
  for (const GpuStepCost& step : costs.steps) steps.push_back(to_json(step));
  return {{"format", kGpuCostsFormat}, {"kind", to_text(costs.kind)}, {"source", costs.source},
          {"date", costs.date},        {"commit", costs.commit},      {"steps", std::move(steps)}};
}

GpuCosts gpu_costs_from_json(const nlohmann::json& json, const std::string& where) {
  const JsonObject object(json, where);
  object.require_format(kGpuCostsFormat);
  object.allow_only({"format", "kind", "source", "date", "commit", "steps"});
  GpuCosts costs;
  costs.kind = kind_from(object);
  costs.source = printable(object.text("source"));
  if (object.has("date")) costs.date = printable(object.text("date"));
  if (object.has("commit")) costs.commit = printable(object.text("commit"));
  for (const JsonObject& step : object.objects("steps", kMostGpuSteps)) {
    costs.steps.push_back(step_from(step));
  }
  return costs;
}

GpuCosts read_gpu_costs(const std::filesystem::path& file) {
  return gpu_costs_from_json(read_json_file(file), file.string());
}

double GpuStep::all_backward() const {
  return std::accumulate(backward.begin(), backward.end(), 0.0);
}

}  // namespace cputrain::simulation
