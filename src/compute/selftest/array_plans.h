#pragma once

#include <cstdint>
#include <vector>

#include "compute/backend.h"
#include "compute/selftest_case.h"

namespace cputrain::selftest {

/// What a backend does to arrays outside of programs: update rules, changes of gradients, sums,
/// norms, copies. Arrays lie anywhere in larger ones, whose other numbers must stay. The backends
/// are borrowed; `reference` computes in double.
std::vector<compute::CasePlan> array_plans(std::uint64_t seed, compute::Backend& tested,
                                           compute::Backend& reference);

}  // namespace cputrain::selftest
