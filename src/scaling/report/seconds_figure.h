#pragma once

#include <optional>
#include <string>

#include "scaling/report/reference_table.h"
#include "scaling/report/scaling_table.h"

namespace cputrain::report {

/// Seconds per epoch by CPUs as an SVG of 800 by 480 pixels, which papers and pages without scripts
/// take. Colours are batches; points are filled where they were measured and hollow where they were
/// simulated. Empty where no cell of a global batch has a time.
std::string seconds_svg(const ScalingTable&, const std::optional<ReferenceTable>&);

}  // namespace cputrain::report
