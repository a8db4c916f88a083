#pragma once

#include <optional>

#include "core/statistics.h"
#include "report/scaling_table.h"

namespace cputrain::report {

/// What a cell's accuracy of validation may be among all images like these: 95 %, by the count of
/// validation images (Wilson, "Probable Inference", 1927). Nothing where either is not known.
std::optional<Interval> validation_interval(const Series&, const cells::Cell&);

}  // namespace cputrain::report
