#include "optim/update_rule.h"

#include "core/overloaded.h"

namespace cputrain::optim {

namespace {

using Names = std::vector<std::string_view>;

constexpr const char* kMomentum = "momentum";

Names names_of_momentum(double momentum) { return momentum > 0 ? Names{kMomentum} : Names{}; }

Names names_of(const RmsProp& rule) {
  Names names{"square"};
  if (rule.centered) names.push_back("mean");
  if (rule.momentum > 0) names.push_back(kMomentum);
  return names;
}

}  // namespace

int state_arrays(const UpdateRule& rule) {
  return std::visit(Overloaded{
                        [](const Sgd& r) { return r.momentum > 0 ? 1 : 0; },
                        [](const RmsProp& r) { return 1 + (r.momentum > 0) + r.centered; },
                        [](const Adam&) { return 2; },
                        [](const Lars& r) { return r.momentum > 0 ? 1 : 0; },
                        [](const Lamb&) { return 2; },
                    },
                    rule);
}

std::vector<std::string_view> state_names(const UpdateRule& rule) {
  return std::visit(Overloaded{[](const Sgd& r) { return names_of_momentum(r.momentum); },
                               [](const RmsProp& r) { return names_of(r); },
                               [](const Adam&) {
                                 return Names{"m", "v"};
                               },
                               [](const Lars& r) { return names_of_momentum(r.momentum); },
                               [](const Lamb&) {
                                 return Names{"m", "v"};
                               }},
                    rule);
}

std::string_view rule_name(const UpdateRule& rule) {
  return std::visit(
      Overloaded{[](const Sgd&) { return "sgd"; }, [](const RmsProp&) { return "rmsprop"; },
                 [](const Adam&) { return "adam"; }, [](const Lars&) { return "lars"; },
                 [](const Lamb&) { return "lamb"; }},
      rule);
}

double default_learning_rate(const UpdateRule& rule) {
  if (std::holds_alternative<Lars>(rule)) return 1;
  return std::holds_alternative<Sgd>(rule) ? 0.01 : 0.001;
}

bool is_layer_wise(const UpdateRule& rule) {
  return std::holds_alternative<Lars>(rule) || std::holds_alternative<Lamb>(rule);
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
