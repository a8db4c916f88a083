#pragma once

#include <memory>

#include "backends/cpu/cpu_backend.h"
#include "compute/executor/target.h"

namespace cputrain::cpu {

/// Operators of oneDNN and of our own, run by `threads` threads of OpenMP. A layer other than dense
/// that reads a flattened map is refused with Error(usage).
std::unique_ptr<compute::Target> make_target(const compute::CompileOptions&, int threads,
                                             const KernelChoice&);

}  // namespace cputrain::cpu
