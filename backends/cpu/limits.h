#pragma once

#include "compute/backend.h"

namespace cputrain::cpu {
namespace amx {
struct Kernels;
}

/// What this machine can do with so many threads: multiply-adds from registers in the widest
/// instructions, and STREAM's triad (McCalpin) over arrays that no cache holds. Best of several.
compute::Limits measure_machine(int threads, const compute::Together&);

/// GFLOP/s of products in tiles whose factors lie in a first-level cache, half of one side zero as
/// behind a ReLU, the others of all bits. On zeros tiles need less power, and clocks stay higher.
/// Each of some passes has `rounds`, so many that clocks have fallen.
double measure_tiles(const amx::Kernels&, int threads, const compute::Together&, int rounds);

}  // namespace cputrain::cpu
