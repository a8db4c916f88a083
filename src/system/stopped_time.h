#pragma once

#include <mutex>
#include <thread>

namespace cputrain::system {

/// Time in which this process as a whole did not run: somebody stopped it (SIGSTOP, a debugger), a
/// container or its machine was paused, or others had all CPUs. Its own clock cannot tell that from
/// waiting for others, where it came while this process waited.
///
/// A thread looks at the clock every kLook seconds. Looks further apart than kGap were not made.
class StoppedTime {
 public:
  StoppedTime();
  /// Seconds since construction; shorter ones than kGap in a row do not count.
  double seconds();

  static constexpr double kLook = 0.1, kGap = 0.3;

 private:
  double look();

  std::mutex mutex_;
  double last_, stopped_ = 0;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace cputrain::system
