#pragma once

#include <optional>

#include "backends/cpu/ops/op.h"
#include "compute/executor/frozen_prefix.h"
#include "model/graph.h"

namespace cputrain::cpu {

struct MadeOps {
  compute::OpList ops;
  std::optional<compute::FrozenEnd> frozen_end{};  ///< as Target::frozen_end()
};

/// The operators of a graph whose pools come before their ReLUs. Throws Error(usage) where a layer
/// reads a flattened map and cannot, naming it.
MadeOps make_ops(const model::Graph&, const Planning&);

}  // namespace cputrain::cpu
