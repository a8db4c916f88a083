#pragma once

#include "compute/backend.h"

namespace cputrain {

/// Sum over parameters of l2 * sum of squares: what Keras adds to the mean loss that it prints, in
/// training (of the weights that the step began with) and in evaluation.
double l2_penalty(Backend&, const ParameterLayout&, const Array& weights);

}  // namespace cputrain
