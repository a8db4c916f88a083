#pragma once

#include <optional>

#include "scaling/commands/tune_options.h"
#include "scaling/tune/rate_curve.h"
#include "scaling/tune/suggestion.h"
#include "training/session/session.h"

namespace cputrain::commands {

/// Climbs the ladders of micro-batches and of batches that the options leave open. The training
/// then has the sizes that are advised. `rates`: a test that follows, for how long all will take.
/// Collective.
void tune_speed(training::Session&, training::TrainingSpec&, const TuneOptions&,
                const std::optional<tune::RateRange>& rates, tune::Findings& to);

}  // namespace cputrain::commands
