#pragma once

#include "train/update_rule.h"

namespace cputrain {

/// Applies the rule with the calling thread's OpenMP threads.
void update_in_parallel(const UpdateRule&, const UpdateSlice&);

/// Backend::change_gradients and Backend::sum_of_squares with these threads.
void change_gradients_in_parallel(const GradientOperation&, const UpdateSlice&);
double sum_of_squares_in_parallel(const Array&);

}  // namespace cputrain
