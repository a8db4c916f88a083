#include "scaling/simulation/gpu/gpu_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <tuple>

#include "core/error.h"
#include "core/json_fields.h"
#include "core/text.h"
#include "scaling/simulation/cost_table.h"

namespace cputrain::simulation {
namespace {

// The file.

constexpr std::size_t kMostGpuSteps = 100'000, kMostGpuLayers = 10'000;
constexpr double kMostSeconds = 1e6;

void describe_layer(JsonMembers& f, LayerSeconds& layer) {
  f.need("name", layer.name);
  f.need("forward", layer.forward, 0, kMostSeconds);
  f.need("backward", layer.backward, 0, kMostSeconds);
}

void check(const GpuStepCost& step, const JsonFields& file) {
  constexpr double kRounding = 1 + 1e-6;
  double seconds = step.update;
  for (const LayerSeconds& layer : step.layers) seconds += layer.forward + layer.backward;
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
  f.word("kind", costs.kind, names(costs.kind));
  f.need("source", costs.source);
  f.may("date", costs.date);
  f.may("commit", costs.commit);
  f.objects("steps", costs.steps, 1, kMostGpuSteps, describe_step, true);
  if (!f.file()) return;
  for (std::string* text : {&costs.source, &costs.date, &costs.commit}) *text = printable(*text);
  f.file()->end();
}

// Steps by layers, of one GPU and one network.

std::string network_text(const std::string& model, int image_size) {
  return fmt::format("{} at {}x{}", printable(model), image_size, image_size);
}

bool is_of(const GpuStepCost& step, const GpuStepCost& wanted) {
  return step.gpu == wanted.gpu && step.model == wanted.model &&
         step.image_size == wanted.image_size && step.precision == wanted.precision;
}

[[noreturn]] void fail_without_costs(const GpuCosts& costs, const GpuStepCost& wanted) {
  constexpr std::size_t kMostNamed = 8;
  std::set<std::tuple<bool, bool, std::string>> there;  // those nearest to what is wanted first
  for (const GpuStepCost& step : costs.steps) {
    there.insert(
        {step.gpu != wanted.gpu, step.model != wanted.model,
         fmt::format("{} of {} in {}", printable(step.gpu),
                     network_text(step.model, step.image_size), printable(step.precision))});
  }
  std::vector<std::string> named;
  for (const auto& [other_gpu, other_model, text] : there) {
    if (named.size() < kMostNamed) named.push_back(text);
  }
  fail(ExitCode::usage,
       "--costs: no costs of {} for {} in {} (times of other GPUs, networks or number formats say "
       "nothing of it); there are: {}{}. scripts/gpu_costs makes others",
       wanted.gpu, network_text(wanted.model, wanted.image_size), wanted.precision,
       join(named, ", "), there.size() > kMostNamed ? " and more" : "");
}

[[noreturn]] void fail_of_other_network(const std::string& what) {
  fail(ExitCode::data,
       "--costs: {}, so they are of another network than --model makes here; make them anew by "
       "scripts/gpu_costs with this program",
       what);
}

/// Part of the images that is in the last micro-batch.
double last_part(int images, int micro_batch) {
  const int others = (images - 1) / micro_batch * micro_batch;
  return static_cast<double>(images - others) / images;
}

GpuStep step_by_layers(const GpuStepCost& cost, const model::Graph& graph) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) places[graph.nodes()[i].name] = i;
  GpuStep step{.backward = std::vector<double>(graph.nodes().size())};
  for (const LayerSeconds& layer : cost.layers) {
    const auto place = places.find(layer.name);
    if (place == places.end()) {
      fail_of_other_network(
          fmt::format("layer '{}' is not one of the model's", printable(layer.name)));
    }
    step.forward += layer.forward;
    step.backward[place->second] += layer.backward;
  }
  return step;
}

/// Layers have parts of the step by their multiply-adds: forward once, backward twice.
GpuStep step_by_arithmetic(const GpuStepCost& cost, const model::Graph& graph) {
  const auto nodes = graph.nodes();
  std::vector<double> forward(nodes.size()), backward(nodes.size());
  bool first = true;
  double all = 0;
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const double macs = model::macs(nodes[i].layer, graph.src_shape(static_cast<int>(i)));
    if (macs == 0) continue;
    forward[i] = macs;
    backward[i] = first ? macs : 2 * macs;  // images need no gradient
    first = false;
    all += forward[i] + backward[i];
  }
  if (all == 0) fail_of_other_network("no layer of the model multiplies");
  const double seconds = cost.seconds - cost.update;
  GpuStep step;
  for (const double macs : forward) step.forward += macs / all * seconds;
  for (const double macs : backward) step.backward.push_back(macs / all * seconds);
  return step;
}

GpuStep step_of(const GpuStepCost& cost, const model::Graph& graph) {
  const auto parameters = static_cast<double>(graph.parameter_count());
  if (cost.parameters > 0 && cost.parameters != parameters) {
    fail_of_other_network(
        fmt::format("they are of {:.0f} parameters, not of {:.0f}", cost.parameters, parameters));
  }
  GpuStep step =
      cost.layers.empty() ? step_by_arithmetic(cost, graph) : step_by_layers(cost, graph);
  step.update = cost.update;
  step.other = std::max(0.0, cost.seconds - step.seconds());
  return step;
}

}  // namespace

std::string GpuCosts::origin() const {
  std::string text(word_of(kind));
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

GpuCosts costs_for(const GpuCosts& costs, const GpuStepCost& wanted) {
  GpuCosts some = costs;
  std::erase_if(some.steps, [&](const GpuStepCost& step) { return !is_of(step, wanted); });
  return some;
}

GpuStepCosts::GpuStepCosts(const GpuCosts& costs, const GpuStepCost& wanted,
                           const model::Graph& graph)
    : gpu_(wanted.gpu) {
  std::map<int, const GpuStepCost*> found;  // by batch; the first of equal ones
  for (const GpuStepCost& step : costs.steps) {
    if (is_of(step, wanted)) found.emplace(step.batch, &step);
  }
  if (found.empty()) fail_without_costs(costs, wanted);
  for (const auto& [batch, cost] : found) {
    batches_.push_back(batch);
    micro_batches_.push_back(cost->micro_batch);
    steps_.push_back(step_of(*cost, graph));
  }
}

std::string GpuStepCosts::obstacle(int images) const {
  if (images >= batches_.front() && images <= batches_.back()) return "";
  const std::string range = batches_.size() == 1
                                ? std::to_string(batches_.front())
                                : fmt::format("{} to {}", batches_.front(), batches_.back());
  return fmt::format("the costs of {} have steps of {} images on a GPU, not of {}", gpu_, range,
                     images);
}

GpuStep GpuStepCosts::at(int images) const {
  assert(obstacle(images).empty());
  const auto value = [&](const auto& of_step) {
    std::vector<double> values;
    for (const GpuStep& step : steps_) values.push_back(of_step(step));
    return interpolate(batches_, values, images);
  };
  GpuStep step;
  step.forward = value([](const GpuStep& s) { return s.forward; });
  step.update = value([](const GpuStep& s) { return s.update; });
  step.other = value([](const GpuStep& s) { return s.other; });
  for (std::size_t node = 0; node < steps_.front().backward.size(); ++node) {
    step.backward.push_back(value([&](const GpuStep& s) { return s.backward[node]; }));
  }
  const auto next = std::ranges::lower_bound(batches_, images) - batches_.begin();
  step.last = last_part(images, micro_batches_[static_cast<std::size_t>(next)]);
  return step;
}

}  // namespace cputrain::simulation
