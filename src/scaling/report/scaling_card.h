#pragma once

#include <optional>
#include <vector>

#include "scaling/report/document.h"
#include "scaling/report/scaling_table.h"

namespace cputrain::report {

/// The fastest cell, measured where there is any that is; nothing where no cell has a time.
std::optional<Card> scaling_card(const ScalingTable&, const std::vector<CellSource>&);

}  // namespace cputrain::report
