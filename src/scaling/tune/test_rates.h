#pragma once

#include "scaling/tune/rate_curve.h"
#include "training/training.h"

namespace cputrain::tune {

/// Trains with a rate that grows at every step, until it is at its end or the loss diverges. The
/// training has started, and its weights are worth nothing afterwards. Its schedule and warm-up are
/// not asked. Losses are of all ranks, so every rank sees one curve. Error(data) where an image is
/// not the data's any more. Collective.
RateCurve test_rates(training::Training&, const RateRange&);

}  // namespace cputrain::tune
