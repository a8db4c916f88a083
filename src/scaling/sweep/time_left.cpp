#include "scaling/sweep/time_left.h"

#include "core/text.h"

namespace cputrain::sweep {

void TimeLeft::spent(double seconds, double cost, double settled) {
  seconds_ += seconds;
  cost_ += cost;
  left_ -= settled;
}

std::string TimeLeft::text() const {
  constexpr double kRounding = 1e-9;
  if (left_ <= kRounding * cost_ || cost_ <= 0) return "";
  return eta_text(seconds_ / cost_ * left_);
}

}  // namespace cputrain::sweep
