#include "core/budget_json.h"

#include <nlohmann/json.hpp>

namespace cputrain {

nlohmann::ordered_json json_of(const Budget& b) {
  nlohmann::ordered_json json;
  for (const BudgetPart& part : kBudgetParts) json[part.name] = b.*part.seconds;
  return json;
}

}  // namespace cputrain
