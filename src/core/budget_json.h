#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/budget.h"

namespace cputrain {

/// Its parts by name, in seconds, as metrics.jsonl and cells.json have them.
nlohmann::ordered_json json_of(const Budget&);

}  // namespace cputrain
