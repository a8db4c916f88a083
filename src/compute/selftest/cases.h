#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "compute/selftest_case.h"
#include "model/graph.h"

namespace cputrain::selftest {

/// A small network, with one kind of layer between others that bring its gradients to light: the
/// gradient by its source shows in the weights of a convolution before it.
struct LayerCase {
  std::string name;
  model::Graph graph;
  std::vector<int> pieces{2, 1};  ///< images of micro-batches: the second adds to the gradients
  /// Signs and largest values decide where gradients go. So that rounding changes none of them,
  /// numbers up to the last such layer are few bits, whose sums are exact.
  bool exact = false;
  bool mixes = false;  ///< labels of other classes, and weights of images
};

/// Every kind of layer, in sizes that the seed decides.
std::vector<LayerCase> layer_cases(std::uint64_t seed);

/// What a backend does to arrays outside of programs: update rules, changes of gradients, sums,
/// norms, copies. Arrays lie anywhere in larger ones, whose other numbers must stay. The backends
/// are borrowed; `reference` computes in double.
std::vector<compute::CasePlan> array_plans(std::uint64_t seed, compute::Backend& tested,
                                           compute::Backend& reference);

}  // namespace cputrain::selftest
