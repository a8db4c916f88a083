#pragma once

#include <optional>
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

}  // namespace cputrain::report
