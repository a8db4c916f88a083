#pragma once

#include <algorithm>

namespace cputrain::system {

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

}  // namespace cputrain::system
