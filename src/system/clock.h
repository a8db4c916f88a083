#pragma once

#include <algorithm>
#include <chrono>
#include <string>

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

/// A clock that runs while this process does. One that was stopped, or whose machine was paused,
/// must not take its own pause for the others' silence. Looked at often enough it shows seconds; of
/// a longer gap between two looks only `most` counts.
class OwnClock {
 public:
  OwnClock(double now, double most) : last_(now), most_(most) {}
  /// `now` in seconds of the system's clock.
  double look(double now) {
    seconds_ += std::clamp(now - last_, 0.0, most_);
    last_ = now;
    return seconds_;
  }

 private:
  double last_, most_, seconds_ = 0;
};

/// Seconds since 1970, for time stamps in files.
inline double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Today in UTC: "2026-11-25".
std::string today();

}  // namespace cputrain::system
