#pragma once

#include "comm/communicator.h"
#include "compute/program.h"
#include "data/batch_plan.h"
#include "data/batch_source.h"

namespace cputrain {

/// Loss and accuracy over every image exactly once, whatever the number of ranks.
Tally evaluate(Program&, BatchSource&, const BatchPlan&, Communicator&);

}  // namespace cputrain
