#pragma once

#include "train/update_rule.h"

namespace cputrain {

/// Applies the rule with the calling thread's OpenMP threads.
void update_in_parallel(const UpdateRule&, const UpdateSlice&);

}  // namespace cputrain
