#include "train/update_rule.h"

#include "core/overloaded.h"

namespace cputrain {

int state_arrays(const UpdateRule& rule) {
  return std::visit(Overloaded{
                        [](const Sgd& r) { return r.momentum > 0 ? 1 : 0; },
                        [](const RmsProp& r) { return 1 + (r.momentum > 0) + r.centered; },
                        [](const Adam&) { return 2; },
                    },
                    rule);
}

std::string_view rule_name(const UpdateRule& rule) {
  return std::visit(
      Overloaded{[](const Sgd&) { return "sgd"; }, [](const RmsProp&) { return "rmsprop"; },
                 [](const Adam&) { return "adam"; }},
      rule);
}

double default_learning_rate(const UpdateRule& rule) {
  return std::holds_alternative<Sgd>(rule) ? 0.01 : 0.001;
}

}  // namespace cputrain
