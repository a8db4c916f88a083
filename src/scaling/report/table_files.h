#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "scaling/report/reference_table.h"
#include "scaling/report/scaling_table.h"

/// A scaling table for programs: a row, or an object, for every cell.
namespace cputrain::report {

/// CSV (RFC 4180: commas, CRLF, a line of names). A line for every split of every cell, `quickest`
/// 1 where the other tables have it; empty where a figure is not known.
std::string table_csv(const ScalingTable&, const std::optional<ReferenceTable>&);

/// {"version":1,"series":[...],"cells":[...],"reference":...}: cells as in cells.json, of the
/// quickest split, with what follows from their times, and all splits.
nlohmann::ordered_json table_json(const ScalingTable&, const std::optional<ReferenceTable>&);

}  // namespace cputrain::report
