#include "core/budget_json.h"

#include "core/json_fields.h"

namespace cputrain {

void fields_of_budget(JsonMembers& f, Budget& budget) {
  constexpr double kMost = 1e12;
  for (const BudgetPart& part : kBudgetParts) f.may(part.name, budget.*part.seconds, -kMost, kMost);
}

nlohmann::ordered_json json_of(const Budget& budget) { return json_of(budget, fields_of_budget); }

}  // namespace cputrain
