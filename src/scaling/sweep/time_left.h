#pragma once

#include <string>

#include "core/text.h"

namespace cputrain::sweep {

/// How long the rest of a sweep will take, from what its beginning took. Cost is in any unit that
/// time grows with.
class TimeLeft {
 public:
  /// Something more is to be done.
  void expect(double cost) { left_ += cost; }
  /// A run of this cost took so many seconds; `settled` is what need not be done any more, which is
  /// more than its own cost where it failed.
  void spent(double seconds, double cost, double settled) {
    seconds_ += seconds;
    cost_ += cost;
    left_ -= settled;
  }
  /// "12:30"; empty where nothing is left.
  std::string text() const {
    constexpr double kRounding = 1e-9;
    const bool nothing = left_ <= kRounding * cost_ || cost_ <= 0;
    return nothing ? "" : eta_text(seconds_ / cost_ * left_);
  }

 private:
  double left_ = 0, seconds_ = 0, cost_ = 0;
};

}  // namespace cputrain::sweep
