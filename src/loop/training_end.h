#pragma once

#include "loop/loop.h"

/// When a training is over.
namespace cputrain::loop {

/// Whether --steps ends the training here.
bool steps_are_made(const TrainOptions&, const Progress&);
/// Whether the epoch that was validated last has the accuracy that is asked for.
bool target_is_reached(const TrainOptions&, const Progress&);
/// Whether it was waited long enough for a better epoch. As Keras does, a patience of 0 waits for
/// the first epoch that is no better, too.
bool waited_enough(const TrainOptions&, const Progress&);
/// Any of these, or the last epoch. Nothing more is made then of an epoch that has begun.
bool is_over(const TrainOptions&, const Progress&);

}  // namespace cputrain::loop
