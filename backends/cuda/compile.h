#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/ops/loss_op.h"
#include "backends/cuda/ops/op.h"
#include "model/graph.h"

namespace cputrain::cuda {

/// A graph as ops, in the order of its nodes.
struct OpList {
  std::vector<std::unique_ptr<Op>> ops;
  LossOp* loss = nullptr;  ///< the last one
};

/// Error(usage) where the backend lacks a layer, or one reads a flattened map that cannot, naming
/// it; where the model does not end in a loss.
OpList make_ops(const model::Graph&, const Planning&);

}  // namespace cputrain::cuda
