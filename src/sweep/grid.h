#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cells/axes.h"
#include "cells/launching.h"
#include "cells/plan.h"
#include "job/spec/training_spec.h"

/// What a grid may ask for, and what it asks a training for.
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
/// the backend or so many of them: who counts GPUs wants no table without. `launching` says what
/// is here; nothing where another machine may measure.
void check_gpus(const cells::SweepGrid&, const std::optional<cells::Launching>& launching);
/// The same for larger batches.
void check_limits(const std::vector<cells::Cell>&, const cells::SweepGrid&);

/// Asks a training for one value of a listed flag, in the spelling of tables: the one place that
/// knows which member of the flags it is. The default leaves them as they are. Error(usage).
void set_value(job::TrainingFlags&, std::string_view flag, const std::string& value);

/// A training of the grid: of the first of its combinations of listed flags that one could have.
/// Error(usage) of the first where there is none. `flags`: all others.
job::TrainingSpec choose_any(const job::TrainingFlags& flags, const cells::SweepGrid&);

/// Why no training could have these values together; empty where one could.
std::string why_never(const job::TrainingFlags& flags, const cells::FlagTexts& axes);

}  // namespace cputrain::sweep
