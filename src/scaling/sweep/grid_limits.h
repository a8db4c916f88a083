#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "scaling/cells/launching.h"
#include "scaling/cells/plan.h"

namespace cputrain::sweep {

/// CPUs of a column, at most.
inline constexpr int kMostColumn = 65'536;

/// "1,2,4", as flags say it.
template <class T>
std::string list_text(const std::vector<T>& values) {
  return fmt::format("{}", fmt::join(values, ","));
}

/// Error(usage) where a grid has more cells than the readers of a table take.
void check_size(const cells::SweepGrid&);
/// Error(usage) where no column is of the GPUs that --gpus counts, and where this machine has not
/// the backend or so many of them: a count of GPUs wants a table with them. `launching` says what
/// is here; nothing where another machine may measure.
void check_gpus(const cells::SweepGrid&, const std::optional<cells::Launching>& launching);
/// The same for larger batches.
void check_limits(const std::vector<cells::Cell>&, const cells::SweepGrid&);

}  // namespace cputrain::sweep
