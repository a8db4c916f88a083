#pragma once

#include "job/session/services.h"
#include "job/spec/training_flags.h"

namespace cputrain {

/// Plans the threads of the whole job and binds this rank's where the plan says so, before it
/// starts any: threads inherit the mask of the one that starts them, and memory lies near the
/// thread that writes it first. The same plan on every rank; collective.
JobPlacement place_ranks(Communicator&, const Machine&, const TrainingFlags&, const Services&);

}  // namespace cputrain
