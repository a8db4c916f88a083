#pragma once

#include <chrono>

#include "system/host_calls.h"

namespace cputrain::system {

/// Seconds on the monotonic clock, or on that of a simulated cluster.
inline double steady_seconds() { return host_calls().seconds(); }

/// Seconds since construction or the last restart.
class Stopwatch {
 public:
  double seconds() const { return steady_seconds() - start_; }

  /// Returns the seconds so far and starts again from zero.
  double lap() {
    const double now = steady_seconds(), elapsed = now - start_;
    start_ = now;
    return elapsed;
  }

 private:
  double start_ = steady_seconds();
};

/// Seconds since 1970, for time stamps in files.
inline double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace cputrain::system
