#pragma once

#include "comm/node_map.h"
#include "training/request/training_flags.h"
#include "training/session/services.h"

namespace cputrain::training {

/// Plans the threads of the whole job and binds this rank's where the plan does, before it starts
/// any: threads inherit the mask of the one that starts them, and memory lies near the thread that
/// writes it first. The same plan on every rank; collective.
placement::JobPlacement place_ranks(comm::Communicator&, const comm::NodeMap&,
                                    const placement::Machine&, const TrainingFlags&,
                                    const Services&);

}  // namespace cputrain::training
