#pragma once

#include "backends/cpu/ops/op.h"

namespace cputrain::cpu {

/// Reads a map, or its gradient, as operators write them: a few images at a time, while these are
/// in the caches. Images come in their order, and all of them.
class MapListener {
 public:
  virtual ~MapListener() = default;
  virtual void value_written(const Execution&, const Range& images) = 0;
  virtual void gradient_written(const Execution&, const Range& images) = 0;
};

}  // namespace cputrain::cpu
