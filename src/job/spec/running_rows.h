#pragma once

#include "job/spec/flag_row.h"

namespace cputrain::job {

/// Flags about how a training runs and what it leaves: machine, exchange, checkpoints, logs.
void add_running(FlagRows&);

}  // namespace cputrain::job
