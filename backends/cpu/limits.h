#pragma once

#include "compute/backend.h"

namespace cputrain::cpu {

/// What this machine can do with so many threads: multiply-adds from registers in the widest
/// instructions, and STREAM's triad (McCalpin) over arrays that no cache holds. Best of several.
compute::Limits measure_machine(int threads, const compute::Together&);

}  // namespace cputrain::cpu
