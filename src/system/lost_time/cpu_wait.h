#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Time that threads wait for a CPU on a machine that does more than it has CPUs for. Like stolen
/// time (system/lost_time/stolen_time.h), which a virtual machine's host takes, it looks like slow
/// work to a rank's own clock.
namespace cputrain::system {

/// What a thread did since it began, in ns. /proc/<pid>/task/<thread>/schedstat has both numbers:
/// "time spent on the cpu", "time spent waiting on a runqueue" (Linux,
/// Documentation/scheduler/sched-stats.rst). A thread that sleeps, or waits for a disk, wants no
/// CPU and does neither; one that spins in a barrier runs.
struct ThreadTimes {
  int thread = 0;
  double ran = 0, waited = 0;

  bool operator==(const ThreadTimes&) const = default;
};

/// Parses a thread's schedstat; nothing for any other text.
std::optional<ThreadTimes> thread_times(int thread, std::string_view schedstat);

/// The part, 0 to 1, of the time for which threads wanted a CPU between two readings, in which they
/// waited for one: waited / (ran + waited), of all threads together. One that began meanwhile
/// counts from its beginning; one that ended does not count. Nothing where no thread ran: the
/// system then does not count (or does not report it).
std::optional<double> waited_part(const std::vector<ThreadTimes>& before,
                                  const std::vector<ThreadTimes>& after);

/// A part from which on it is printed.
inline constexpr double kWaitWorthSaying = 0.1;

/// Why threads wait, in words. `crowded`: the ranks have more threads than there are CPUs.
std::string cpu_wait_reason(bool crowded);

/// What the threads of this process waited since the last question.
class CpuWait {
 public:
  CpuWait();
  /// The part, 0 to 1, since construction or the last call; nothing where the system does not
  /// report it.
  std::optional<double> part_since_last();

 private:
  std::vector<ThreadTimes> before_;
};

}  // namespace cputrain::system
