#pragma once

#include "compute/program.h"

namespace cputrain::data {

/// This rank's micro-batches in the order of the plan, made ready ahead of need.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Goes to a step (from 0) of an epoch (from 0); next() then gives that step's first micro-batch.
  virtual void seek(int epoch, std::size_t step) = 0;
  /// The next micro-batch, going on from step to step and ending with the epoch. It may be empty
  /// (a rank without images in this step). Valid until the next call.
  virtual const compute::MicroBatch& next() = 0;
};

}  // namespace cputrain::data
