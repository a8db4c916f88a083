#pragma once

#include <string>
#include <string_view>

#include "scaling/cells/axes.h"
#include "scaling/cells/plan.h"
#include "scaling/sweep/sweep_request.h"
#include "training/request/training_spec.h"

namespace cputrain::sweep {

/// Asks a training for one value of a listed flag, in the spelling of tables. The default leaves
/// them as they are. Error(usage).
void set_value(training::TrainingFlags&, std::string_view flag, const std::string& value);

/// A training of the grid: of the first of its combinations of listed flags that one could have.
/// Error(usage) of the first where there is none. `flags`: all others.
training::TrainingSpec choose_any(const training::TrainingFlags& flags, const cells::SweepGrid&);

/// Why no training could have these values together; empty where one could.
std::string why_never(const training::TrainingFlags& flags, const cells::FlagTexts& axes);

}  // namespace cputrain::sweep
