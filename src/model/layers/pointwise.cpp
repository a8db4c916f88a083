#include "model/layers/pointwise.h"

#include <fmt/format.h>

#include <utility>

#include "core/json_fields.h"

namespace cputrain::model {

LayerFacts BatchNorm::facts() const {
  return {.keras_name = "batch_normalization",
          .passage = Passage::scales,
          .keeps_order = true,
          .joins_images = true,
          .momentum = momentum,
          .epsilon = epsilon};
}

std::vector<ParameterSpec> BatchNorm::parameters(const Shape& src) const {
  const std::vector<int> channels{src.channels};
  return {{.name = "gamma", .extents = channels, .fill = 1},
          {.name = "beta", .extents = channels},
          {.name = "moving_mean", .extents = channels, .learnt = false, .averaged = true},
          {.name = "moving_variance",
           .extents = channels,
           .learnt = false,
           .averaged = true,
           .fill = 1}};
}

void BatchNorm::members(JsonMembers& m) {
  m.may("epsilon", epsilon, 1e-12, 1);
  m.may("momentum", momentum, 0, 1);
}

LayerFacts LayerNorm::facts() const {
  LayerFacts facts{.keras_name = "layer_normalization", .keeps_order = true, .epsilon = epsilon};
  if (!scale && !offset) facts.formula = fmt::format("{} of epsilon {:.6g}", kWord, epsilon);
  return facts;
}

std::vector<ParameterSpec> LayerNorm::parameters(const Shape& src) const {
  std::vector<ParameterSpec> specs;
  if (scale) specs.push_back({.name = "gamma", .extents = {src.channels}, .fill = 1});
  if (offset) specs.push_back({.name = "beta", .extents = {src.channels}});
  return specs;
}

void LayerNorm::members(JsonMembers& m) {
  m.may("epsilon", epsilon, 1e-12, 1);
  m.may("scale", scale);
  m.may("offset", offset);
}

namespace {

/// What ReLUs have in common.
LayerFacts facts_of_relu(std::string_view keras_name, std::string formula) {
  return {.keras_name = keras_name,
          .passage = Passage::bends,
          .keeps_order = true,
          .in_place = true,
          .formula = std::move(formula),
          .has_kinks = true,
          .dies_at_zero = true};
}

}  // namespace

LayerFacts Relu::facts() const {
  LayerFacts facts = facts_of_relu("re_lu", std::string(kWord));
  facts.behind_pools = true;
  return facts;
}

LayerFacts Relu6::facts() const { return facts_of_relu("relu6", std::string(kWord)); }

LayerFacts LeakyRelu::facts() const {
  LayerFacts facts = facts_of_relu("leaky_re_lu", fmt::format("{} of slope {}", kWord, slope));
  facts.dies_at_zero = slope == 0;
  return facts;
}

void LeakyRelu::members(JsonMembers& m) { m.may("slope", slope, 0, 1); }

LayerFacts Silu::facts() const {
  return {.keras_name = "silu",
          .passage = Passage::bends,
          .keeps_order = true,
          .formula = std::string(kWord)};
}

LayerFacts Dropout::facts() const {
  return {.keras_name = "dropout",
          .passage = Passage::linear,
          .keeps_order = true,
          .in_place = true,
          .drops = rate};
}

void Dropout::members(JsonMembers& m) { m.need("rate", rate, 0, 0.999); }

LayerFacts SigmoidCrossEntropy::facts() const {
  return {.keras_name = "sigmoid", .passage = Passage::linear, .formula = std::string(kWord)};
}

LayerFacts SoftmaxCrossEntropy::facts() const {
  return {.keras_name = "softmax", .passage = Passage::linear, .formula = std::string(kWord)};
}

}  // namespace cputrain::model
