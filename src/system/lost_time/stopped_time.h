#pragma once

#include <mutex>

#include "system/clock.h"

namespace cputrain::system {

/// Time in which this process as a whole did not run: it was stopped (SIGSTOP, a debugger), a
/// container or its machine was paused, or others had all CPUs. On its own clock that looks like
/// waiting for others, where it came while this process waited.
///
/// A thread that does little else looks at the clock all the time: longer than kGap without a look
/// were not its own.
class StoppedTime {
 public:
  static constexpr double kGap = 0.3;

  /// From any thread. Seconds since construction.
  double look() {
    const std::lock_guard lock(mutex_);
    const double gap = since_look_.lap();
    if (gap > kGap) stopped_ += gap;
    return stopped_;
  }

 private:
  std::mutex mutex_;
  Stopwatch since_look_;
  double stopped_ = 0;
};

}  // namespace cputrain::system
