#pragma once

#include <cstdint>

#include "comm/pulse.h"
#include "loop/parts.h"
#include "loop/records.h"

namespace cputrain::loop {

/// Looks on while steps are made. The pulse shows the phase to the watch over this rank, a profiler
/// sees its name, tests break something there (faults.h), and the timeline keeps its time.
class Observer {
 public:
  /// Borrows them.
  explicit Observer(const Parts& parts) : parts_(parts) {}

  /// `step` counts from 1. What comes before its first phase is the penalty's.
  void begin_step(std::uint64_t step);
  /// A phase of the step begins; of several micro-batches, each has its own. `loss_scale`: of
  /// gradients that are still to be computed.
  void at(comm::Phase, double* loss_scale = nullptr);
  /// A part of the phase begins that the timeline shows by itself.
  void part(const char* name) { parts_.timeline.next(name); }
  void end_step() { parts_.timeline.end_step(); }

 private:
  const Parts& parts_;
  std::uint64_t step_ = 0;
  unsigned seen_ = 0;  ///< phases of this step, a bit each: faults come at the first of a kind
};

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
