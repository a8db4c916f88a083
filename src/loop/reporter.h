#pragma once

#include "loop/records.h"

namespace cputrain::loop {

/// Hears from the loop what happens. By default it does nothing with it.
class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void begin_epoch(const EpochStart&) {}
  virtual void step(const StepRecord&) {}
  /// So many of all images have been evaluated behind an epoch: at least once a batch.
  virtual void validating([[maybe_unused]] std::size_t images, [[maybe_unused]] std::size_t all) {}
  virtual void epoch(const EpochRecord&) {}
  /// A plateau changed the learning rate, which is this one from that epoch on (from 1). After the
  /// epoch before, unless it was the last one.
  virtual void rate_changed([[maybe_unused]] int epoch, [[maybe_unused]] double rate) {}
};

}  // namespace cputrain::loop
