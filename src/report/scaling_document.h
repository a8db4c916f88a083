#pragma once

#include <optional>
#include <vector>

#include "report/document.h"
#include "report/reference_table.h"
#include "report/scaling_table.h"

namespace cputrain {

/// Everything that a sweep's report says, in sections; those without figures are left out.
Document scaling_document(const ScalingTable&, const std::vector<CellSource>&,
                          const std::optional<ReferenceTable>&, const Prices&);

}  // namespace cputrain
