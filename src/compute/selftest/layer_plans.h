#pragma once

#include <cstdint>
#include <string>

#include "compute/backend.h"
#include "compute/selftest/layer_cases.h"
#include "compute/selftest_case.h"

namespace cputrain::selftest {

/// The output with the number of images that were predicted rightly.
inline constexpr const char* kPredictions = "correct predictions";

/// A training step of the case: loss, correct predictions, probabilities and the gradient of every
/// parameter. Arenas of gradients are full of something else before the first micro-batch
/// overwrites them. All is borrowed; `reference` computes in double.
compute::CasePlan plan_of(const LayerCase&, std::uint64_t seed, double limit,
                          compute::Backend& tested, compute::Backend& reference);

/// What `reference` computes of it.
compute::RunOutputs expected_of(const LayerCase&, std::uint64_t seed, compute::Backend& reference);

/// Why the backend compiles no such network: a layer that it lacks. Empty: it does. What else goes
/// wrong is an Error.
std::string refusal_of(const LayerCase&, compute::Backend&);

}  // namespace cputrain::selftest
