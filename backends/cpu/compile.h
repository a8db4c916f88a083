#pragma once

#include "backends/cpu/ops/op.h"
#include "model/graph.h"

namespace cputrain::cpu {

/// The operators of a graph whose pools come before their ReLUs. Throws Error(usage) where a layer
/// reads a flattened map and cannot, naming it.
compute::OpList make_ops(const model::Graph&, const Planning&);

}  // namespace cputrain::cpu
