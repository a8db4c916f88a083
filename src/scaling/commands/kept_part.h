#pragma once

#include <optional>

#include "scaling/commands/tune_options.h"
#include "training/session/session.h"

namespace cputrain::commands {

/// The part, above 0 to 1, of what frozen layers make of its images that this training would keep
/// from its first epoch on; nothing where it keeps none. With synthetic images where no data are
/// named. Compiles it, silently, where layers are frozen. Collective; Error as a training.
std::optional<double> kept_part(training::Session&, const training::TrainingSpec&);

}  // namespace cputrain::commands
