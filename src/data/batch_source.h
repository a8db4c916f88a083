#pragma once

#include <string>

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

  /// Whether images come from a file that may change meanwhile, or are still being decoded; the
  /// same on all ranks.
  virtual bool may_fail() const { return false; }
  /// Why some image of the micro-batches given so far is not the data's, on this rank; empty where
  /// all are. Such a micro-batch has the size that it must have, so that ranks stay together: what
  /// was computed with it is worth nothing.
  virtual std::string failure() const { return {}; }

  /// Decodes what is missing, also what no micro-batch has asked for.
  virtual void read_rest() {}
  /// Whether all images are decoded that this rank may need.
  virtual bool complete() const { return true; }
  /// All ranks have all images, and none of them is damaged: from here on none can fail.
  virtual void settle() {}
  /// Whether that is still to come; the same on all ranks.
  virtual bool filling() const { return false; }
};

}  // namespace cputrain::data
