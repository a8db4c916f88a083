#pragma once

#include <optional>

#include "core/statistics/statistics.h"
#include "scaling/report/scaling_table.h"

namespace cputrain::report {

/// What an accuracy on so many images, at least one, may be among all images like these: 95 %
/// (Wilson, "Probable Inference", 1927).
Interval accuracy_interval(double accuracy, double images);

/// The same of a cell's accuracy of validation. Nothing where it or the images are not known.
std::optional<Interval> validation_interval(const Series&, const cells::Cell&);

}  // namespace cputrain::report
