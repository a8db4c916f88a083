#pragma once

#include "compute/selftest/layer_plans.h"
#include "compute/selftest_case.h"

/// What tests of backends share with `selftest`: programs that are driven through the contracts.
namespace cputrain::testing {

using compute::relative_distance;
using selftest::make_images;
using selftest::Outcome;
using selftest::Samples;
using selftest::Trial;
using selftest::trial_weights;
using selftest::WeightSource;

}  // namespace cputrain::testing
