#pragma once

#include "compute/backend.h"

namespace cputrain::loop {

/// Sum over parameters that learn of l2 * sum of squares: what Keras adds to the mean loss that it
/// prints, in training (with the weights that the step began with) and in evaluation. It takes the
/// weights as they are when it is waited for.
compute::Pending<double> l2_penalty(compute::Backend&, const compute::ParameterLayout&,
                                    const Array& weights);

}  // namespace cputrain::loop
