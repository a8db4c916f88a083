#pragma once

#include <algorithm>

namespace cputrain::watch {

/// How long, in seconds, others may be waited for.
struct Limits {
  double warning = 60;   ///< --stall-warning: from then on it is printed
  double timeout = 600;  ///< --stall-timeout: then the job ends; 0: never
  double start = 600;    ///< --start-timeout: until all ranks have met; 0: for ever

  /// A short time-out is announced before it comes.
  double warns_after() const { return timeout > 0 ? std::min(warning, timeout / 2) : warning; }
  /// Between two reports of a rank.
  double beat() const { return std::clamp(warns_after() / 10, 0.1, 1.0); }
  /// Without a CPU for so long, a rank that others wait for hangs.
  double hangs_after() const { return warns_after() / 2; }
  /// Whether it uses one is looked at so often.
  double sample() const { return hangs_after() / 3; }
  /// Ranks that wait have found every message that came once they had a CPU for so long.
  double looked_enough() const { return std::min(warns_after(), 10.0); }
  /// Without a word for so long, a rank is silent.
  double silent_after() const { return std::max(4 * beat(), 1.0); }
};

/// A stall is printed again so much later, as long as it lasts.
inline constexpr double kSayAgain = 60;

}  // namespace cputrain::watch
