#include "optim/update_rule.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/names.h"
#include "core/text.h"

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

/// A figure that people may set, and its bounds.
struct Figure {
  std::string_view name;
  double least, most;
  bool is_switch = false;
};

constexpr Figure kFigures[] = {{"momentum", 0, 0.9999}, {"nesterov", 0, 1, true},
                               {"rho", 0, 0.999999},    {"centered", 0, 1, true},
                               {"epsilon", 0, 1e3},     {"trust", 1e-9, 1e3}};

/// "momentum=X from 0 to 0.9999, nesterov, ..."
std::string figure_forms() {
  std::vector<std::string> forms;
  for (const auto& [name, least, most, is_switch] : kFigures) {
    forms.push_back(is_switch ? std::string(name)
                              : fmt::format("{}=X from {:g} to {:g}", name, least, most));
  }
  return join(forms, ", ");
}

/// Nothing where it is no value of the figure. A switch may stand alone.
std::optional<double> value_of(const Figure& figure, std::string_view text) {
  if (figure.is_switch && (text.empty() || text == "true")) return 1;
  if (figure.is_switch && text == "false") return 0;
  const auto value = number_in<double>(text);
  return value && *value >= figure.least && *value <= figure.most ? value : std::nullopt;
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

RuleChoice parse_rule(const std::string& text) {
  RuleChoice choice;
  const std::size_t colon = text.find(':');
  std::string figures = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (colon == std::string::npos && text.find('=') != std::string::npos) {
    figures = text;
  } else {
    choice.rule = text.substr(0, colon);
    const std::vector<std::string> rules = rule_names();
    if (std::ranges::find(rules, choice.rule) == rules.end())
      refuse_word("optimizer", choice.rule, rules);
  }
  if (figures.empty() && colon == std::string::npos) return choice;
  for (const std::string& part : split(figures, ',')) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const auto figure = std::ranges::find(kFigures, part.substr(0, equals), &Figure::name);
    const auto value = figure == std::end(kFigures)
                           ? std::nullopt
                           : value_of(*figure, part.substr(std::min(equals + 1, part.size())));
    if (value && choice.figures.emplace(figure->name, *value).second) continue;
    fail(ExitCode::usage,
         "--optimizer {}: {} must be a figure of the rule with its value, each once: {}", text,
         part.empty() ? "what stands between commas" : part, figure_forms());
  }
  return choice;
}

}  // namespace cputrain::optim
