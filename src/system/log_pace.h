#pragma once

#include <functional>

#include "system/clock.h"

namespace cputrain::system {

/// How often a long task prints its progress where no terminal shows a line that is redrawn (a log
/// file, a batch job): every 30 s, the first time after 30 s.
class LogPace {
 public:
  static constexpr double kSeconds = 30;

  /// `now` is a clock in seconds.
  explicit LogPace(std::function<double()> now = steady_seconds)
      : now_(std::move(now)), last_(now_()) {}

  /// True when a line is due, and then not for the next 30 s.
  bool due() {
    const double now = now_();
    if (now - last_ < kSeconds) return false;
    last_ = now;
    return true;
  }

 private:
  std::function<double()> now_;
  double last_;
};

}  // namespace cputrain::system
