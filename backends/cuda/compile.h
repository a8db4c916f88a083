#pragma once

#include "backends/cuda/ops/op.h"
#include "model/graph.h"

namespace cputrain::cuda {

/// Error(usage) where the backend lacks a layer, or one reads a flattened map that cannot, naming
/// it.
compute::OpList make_ops(const model::Graph&, const Planning&);

}  // namespace cputrain::cuda
