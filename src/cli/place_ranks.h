#pragma once

#include "cli/config.h"
#include "cli/services.h"

namespace cputrain {

/// Plans the threads of the whole job and binds this rank's where the plan says so, before it
/// starts any: threads inherit the mask of the one that starts them, and memory lies near the
/// thread that writes it first. The same plan on every rank; collective.
JobPlacement place_ranks(Communicator&, const Machine&, const Config&, const Services&);

}  // namespace cputrain
