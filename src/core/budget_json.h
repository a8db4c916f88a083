#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/budget.h"

namespace cputrain {

class JsonMembers;

/// Its parts by name, in seconds, as metrics.jsonl and cells.json have them.
nlohmann::ordered_json json_of(const Budget&);
/// The same in both directions; parts that are missing are 0.
void fields_of_budget(JsonMembers&, Budget&);

}  // namespace cputrain
