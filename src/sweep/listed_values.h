#pragma once

#include <string>
#include <string_view>

#include "cells/axes.h"
#include "cells/plan.h"
#include "job/spec/training_spec.h"
#include "sweep/sweep_request.h"

namespace cputrain::sweep {

/// Asks a training for one value of a listed flag, in the spelling of tables. The default leaves
/// them as they are. Error(usage).
void set_value(job::TrainingFlags&, std::string_view flag, const std::string& value);

/// A training of the grid: of the first of its combinations of listed flags that one could have.
/// Error(usage) of the first where there is none. `flags`: all others.
job::TrainingSpec choose_any(const job::TrainingFlags& flags, const cells::SweepGrid&);

/// Why no training could have these values together; empty where one could.
std::string why_never(const job::TrainingFlags& flags, const cells::FlagTexts& axes);

}  // namespace cputrain::sweep
