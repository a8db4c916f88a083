#include "scaling/simulation/gpu/gpu_costs.h"

#include <fmt/format.h>

#include <array>
#include <numeric>
#include <utility>

#include "core/json_fields.h"
#include "core/text.h"
#include "scaling/simulation/cost_table.h"

namespace cputrain::simulation {
namespace {

constexpr std::size_t kMostGpuSteps = 100'000, kMostGpuLayers = 10'000;
constexpr double kMostSeconds = 1e6;

constexpr std::array<std::pair<GpuCostKind, const char*>, 3> kKinds{
    {{GpuCostKind::predicted, "predicted"},
     {GpuCostKind::measured, "measured"},
     {GpuCostKind::published, "published"}}};

void describe_layer(JsonMembers& f, GpuLayerCost& layer) {
  f.need("name", layer.name);
  f.need("forward", layer.forward, 0, kMostSeconds);
  f.need("backward", layer.backward, 0, kMostSeconds);
}

void check(const GpuStepCost& step, const JsonFields& file) {
  constexpr double kRounding = 1 + 1e-6;
  double seconds = step.update;
  for (const GpuLayerCost& layer : step.layers) seconds += layer.forward + layer.backward;
  if (seconds <= step.seconds * kRounding) return;
  file.wrong("seconds must not be less than those of layers and update together");
}

/// Sources may give images per second in the place of seconds.
void read_rate(const JsonFields& file, GpuStepCost& step) {
  if (file.has("seconds") == file.has("images_per_second")) {
    file.wrong("must have either seconds or images_per_second");
  }
  if (!file.has("seconds")) step.seconds = step.batch / file.real("images_per_second", 1e-3, 1e12);
}

void describe_step(JsonMembers& f, GpuStepCost& step) {
  f.need("gpu", step.gpu);
  f.need("model", step.model);
  f.need("image_size", step.image_size, 1, 16384);
  f.need("precision", step.precision);
  f.need("batch", step.batch, 1, 1 << 24);
  if (f.file()) step.micro_batch = step.batch;
  f.may("micro_batch", step.micro_batch, 1, step.batch);
  if (f.file()) read_rate(*f.file(), step);
  f.may("seconds", step.seconds, 1e-9, kMostSeconds);
  f.may("update", step.update, 0, kMostSeconds);
  f.rare("parameters", step.parameters, 0, 1e15);
  const bool layers = f.file() ? f.file()->has("layers") : !step.layers.empty();
  if (layers) f.objects("layers", step.layers, 1, kMostGpuLayers, describe_layer, true);
  if (f.file()) check(step, *f.file());
}

void describe_costs(JsonMembers& f, GpuCosts& costs) {
  f.format("cputrain gpu costs 1");
  f.word("kind", costs.kind, kKinds);
  f.need("source", costs.source);
  f.may("date", costs.date);
  f.may("commit", costs.commit);
  f.objects("steps", costs.steps, 1, kMostGpuSteps, describe_step, true);
  if (!f.file()) return;
  for (std::string* text : {&costs.source, &costs.date, &costs.commit}) *text = printable(*text);
  f.file()->end();
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

nlohmann::ordered_json to_json(const GpuCosts& costs) { return json_of(costs, describe_costs); }

GpuCosts gpu_costs_from_json(const nlohmann::json& json, const std::string& where) {
  return value_of<GpuCosts>({json, where, kFileRemedy}, describe_costs);
}

GpuCosts read_gpu_costs(const std::filesystem::path& file) {
  return gpu_costs_from_json(read_file(file), file.string());
}

double GpuStep::all_backward() const {
  return std::accumulate(backward.begin(), backward.end(), 0.0);
}

}  // namespace cputrain::simulation
