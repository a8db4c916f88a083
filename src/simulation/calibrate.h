#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "core/machine.h"
#include "data/dataset.h"
#include "simulation/cost_table.h"

namespace cputrain {

/// What is measured for a cost table, and on what.
struct Calibration {
  const Graph& graph;
  const UpdateRule& rule;
  std::uint64_t seed;  ///< of the initial weights
  const ImageSet& images;
  const Machine& machine;
  std::vector<int> sizes;  ///< images at once, ascending
  /// A backend with one thread, for the thread that calls it.
  std::function<std::unique_ptr<Backend>()> make_backend;
  std::function<void(const std::string&)> say;
};

/// Times passes of the model from its initial weights by layer and number of images, the update,
/// sums of arrays and the machine's limits, first on one core, then on all cores at the same time,
/// then on all hardware threads. Takes about a minute. Names of model and network are left to the
/// caller.
CostTable calibrate(const Calibration&);

}  // namespace cputrain
