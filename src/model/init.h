#pragma once

#include <cstdint>
#include <vector>

#include "model/graph.h"

namespace cputrain::model {

/// Starting values in the canonical layout: kernels by their layer's Initializer, biases 0 unless
/// it says otherwise, batch norm's gamma and moving variance 1. A function of (seed, node), rounded
/// to float so that every precision starts from the same numbers.
std::vector<double> initial_values(const Graph::Node& node, const ParameterSpec& parameter,
                                   std::uint64_t seed);

}  // namespace cputrain::model
