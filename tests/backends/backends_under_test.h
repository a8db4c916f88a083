#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compute/backend.h"

namespace cputrain::testing {

/// A backend that must compute what `reference` computes, and how closely.
struct BackendUnderTest {
  std::string name;
  std::function<std::unique_ptr<compute::Backend>()> make;
  double tolerance;     ///< relative distance of a tensor from the reference in double
  bool repeats = true;  ///< the same call gives the same bits: it does not choose by measuring
  /// Whether it has all layers of the graph; those that it lacks it refuses.
  std::function<bool(const model::Graph&)> runs = [](const model::Graph&) { return true; };
  bool emulated = false;  ///< slow: spare it what is large for its own sake
};

/// The backend refuses to compile the graph: Error(usage).
void expect_refusal(const BackendUnderTest&, const model::Graph&);

/// Those that this build and this machine have. `reference` in float is always among them.
std::vector<BackendUnderTest> backends_under_test();
/// The CUDA backend on the device that the program was linked for; none where that is missing.
std::vector<BackendUnderTest> cuda_backends_under_test();
/// Those whose convolutions multiply numbers of 8 bits, `reference` in float among them. A ReLU or
/// a pool may turn a small difference into a larger one: `tolerance` is of such networks.
std::vector<BackendUnderTest> narrow_backends_under_test();

}  // namespace cputrain::testing
