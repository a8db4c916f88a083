#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "scaling/report/curves.h"
#include "scaling/report/document.h"
#include "scaling/report/reference_table.h"
#include "scaling/report/scaling_table.h"

namespace cputrain::report {

/// What a document is made from. Borrows all of it.
struct ScalingFacts {
  const ScalingTable& table;
  const std::vector<CellSource>& sources;
  const std::optional<ReferenceTable>& reference;
  const cells::Prices& prices;
  const Curves& curves;
};

/// Everything that a sweep's report says, in sections; those without figures are left out.
Document scaling_document(const ScalingFacts&);

/// CSV (RFC 4180: commas, CRLF, a line of names). A line for every split of every cell, `quickest`
/// 1 where the other tables have it; empty where a figure is not known.
std::string table_csv(const ScalingTable&, const std::optional<ReferenceTable>&);

/// {"version":1,"series":[...],"cells":[...],"reference":...}: cells as in cells.json, of the
/// quickest split, with what follows from their times, and all splits.
nlohmann::ordered_json table_json(const ScalingTable&, const std::optional<ReferenceTable>&);

/// Seconds per epoch by CPUs as an SVG of 800 by 480 pixels, which papers and pages without scripts
/// take. Colours are batches; points are filled where they were measured and hollow where they were
/// simulated. Empty where no cell of a global batch has a time.
std::string seconds_svg(const ScalingTable&, const std::optional<ReferenceTable>&);

}  // namespace cputrain::report
