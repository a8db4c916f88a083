#pragma once

#include <cstdint>
#include <vector>

#include "model/graph.h"

namespace cputrain::model {

/// Keras' starting values in the canonical layout: kernels glorot_uniform (uniform in +-limit,
/// limit = sqrt(6 / (fan_in + fan_out)), fans of a convolution times its kernel's area), biases 0,
/// batch norm's gamma and moving variance 1.
/// A function of (seed, node), rounded to float so that every precision starts from the same
/// numbers.
std::vector<double> initial_values(const Graph::Node& node, const ParameterSpec& parameter,
                                   std::uint64_t seed);

}  // namespace cputrain::model
