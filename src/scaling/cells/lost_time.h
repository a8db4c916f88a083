#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/budget.h"
#include "scaling/cells/cells.h"

namespace cputrain::cells {

/// Time in which ranks could not compute: what they lacked, how much of it, and what to try.
struct LostTime {
  const char* what;  ///< "images", "communication", "balance", "host", "CPUs"
  double share;      ///< 0 to 1
  std::string sentence;
};

/// What a training lost enough of to matter, the most first: waiting for images, for sums that
/// backward did not hide, and for the slowest rank (kWaitLimits of its seconds); CPU time that a
/// host or other threads took (kStolenWorthSaying, kWaitWorthSaying).
std::vector<LostTime> lost_time(const Budget&, double seconds, std::optional<double> stolen,
                                std::optional<double> cpu_wait);

/// What a cell lost; nothing where its budget is not known.
std::vector<LostTime> lost_time_of(const Cell&);

}  // namespace cputrain::cells
