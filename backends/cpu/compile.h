#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/ops/step.h"
#include "model/graph.h"

namespace cputrain::cpu {

/// The steps of a graph whose pools come before their ReLUs. Throws Error(usage) where a layer
/// reads a flattened map and cannot, naming it.
std::vector<std::unique_ptr<Step>> make_steps(const model::Graph&, const Planning&);

}  // namespace cputrain::cpu
