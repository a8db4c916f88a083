#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/statistics/statistics.h"
#include "scaling/report/scaling_table.h"

/// What a report comes to, in two sentences that say nothing that the repeats do not show.
namespace cputrain::report {

/// A cell with its row.
struct FastestCell {
  GridRow row;
  const ScalingCell* cell;
};
/// The cell with the least time; nothing where none has one.
std::optional<FastestCell> fastest_of(const Grid&);

/// How many times as fast `to` is as `from`, by the repeats of both (compare_times). The interval
/// is missing where one of them has one repeat. Both have a time.
TimeRatio gain_of(const cells::Cell& from, const cells::Cell& to);

/// Whether an interval leaves 1 out on the side of a gain.
bool is_shown(const TimeRatio& gain);

/// Where more CPUs stop paying, in one row of a grid. A step from one number of CPUs to the next
/// pays where it brings at least half of the gain that its CPUs promise (a doubling: 1.5 times),
/// and where that gain is beyond the spread of the repeats.
struct Knee {
  int cpus = 0;        ///< the largest number to which a step paid; 0 where none did
  int next = 0;        ///< the number after it that has a time; 0 where that was the last
  double gain = 1;     ///< the step's to `next`, by geometric means
  bool open = false;   ///< the repeats leave open whether the step to `next` pays
  bool known = false;  ///< false where some step has too few repeats, or there is no step
};
Knee knee_of(const Grid&, const GridRow&);

/// Two sentences on each series that has a time, with the name of the series where there are
/// several: the fastest cell and its speed-up; the knee at its batch and what limits that cell.
std::vector<std::string> headlines(const ScalingTable&);

}  // namespace cputrain::report
