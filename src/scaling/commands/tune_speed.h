#pragma once

#include <optional>

#include "scaling/commands/commands.h"
#include "scaling/tune/findings.h"
#include "training/request/choose_training.h"
#include "training/session/session.h"

namespace cputrain::commands {

/// Climbs the ladders of micro-batches and of batches that the options leave open. The training
/// then has the sizes that are advised. `rates`: a test that follows, for how long all will take.
/// Collective.
void tune_speed(training::Session&, training::TrainingSpec&, const TuneOptions&,
                const std::optional<tune::RateRange>& rates, tune::Findings& to);

/// The part, above 0 to 1, of what frozen layers make of its images that this training would keep
/// from its first epoch on; nothing where it keeps none. With synthetic images where no data are
/// named. Compiles it, silently, where layers are frozen. Collective; Error as a training.
std::optional<double> kept_part(training::Session&, const training::TrainingSpec&);

}  // namespace cputrain::commands
