#include "optim/update_rule.h"

#include <algorithm>

namespace cputrain::optim {
namespace {

/// One of each, with its own figures.
const std::vector<UpdateRule>& all_rules() {
  static const auto all = []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return std::vector<UpdateRule>{UpdateRule(std::in_place_index<kIndex>)...};
  }
  (std::make_index_sequence<std::variant_size_v<UpdateRule>>());
  return all;
}

}  // namespace

std::vector<std::string> figure_names() {
  std::vector<std::string> names;
  for (const UpdateRule& rule : all_rules()) {
    for_figures(rule, [&](const char* name, auto) {
      if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
    });
  }
  return names;
}

int state_arrays(const UpdateRule& rule) { return static_cast<int>(state_names(rule).size()); }

StateNames state_names(const UpdateRule& rule) {
  return std::visit([](const auto& r) { return r.states(); }, rule);
}

std::string_view rule_name(const UpdateRule& rule) {
  return std::visit([](const auto& r) { return r.kName; }, rule);
}

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (const UpdateRule& rule : all_rules()) names.emplace_back(rule_name(rule));
  return names;
}

std::optional<UpdateRule> rule_named(std::string_view name) {
  const auto found = std::ranges::find(all_rules(), name, rule_name);
  return found == all_rules().end() ? std::nullopt : std::optional(*found);
}

double default_learning_rate(const UpdateRule& rule) {
  return std::visit([](const auto& r) { return r.kLearningRate; }, rule);
}

double default_weight_decay(const UpdateRule& rule) {
  return std::visit(
      [](const auto& r) {
        if constexpr (requires { r.kWeightDecay; }) return r.kWeightDecay;
        return 0.0;
      },
      rule);
}

bool is_layer_wise(const UpdateRule& rule) {
  return std::visit(
      [](const auto& r) {
        return requires { r.kLayerWise; };
      },
      rule);
}

double momentum_of(const UpdateRule& rule) {
  return std::visit(
      [](const auto& r) {
        if constexpr (requires { r.momentum; }) return r.momentum;
        return 0.0;
      },
      rule);
}

UpdateRule with_momentum_times(const UpdateRule& rule, double factor) {
  UpdateRule changed = rule;
  std::visit(
      [&](auto& r) {
        if constexpr (requires { r.momentum; }) r.momentum *= factor;
      },
      changed);
  return changed;
}

}  // namespace cputrain::optim
