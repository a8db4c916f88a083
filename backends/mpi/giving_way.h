#pragma once

#include <chrono>

namespace cputrain::mpi {

/// From now on a thread that gives way, as ranks do that wait inside MPI, sleeps where others want
/// its core.
///
/// Open MPI's ranks wait by calling sched_yield again and again. On a core with other work each
/// call lasts as long as the scheduler's turn, and messages wait for it. So this program has its
/// own sched_yield, which sleeps for a moment after calls that lasted so long. (Open MPI 5 can
/// always sleep instead.) Beside three compilers on 2 cores seven ranks compute 2.7 times as many
/// images a second with it, and alone there an eighth less (tests/bench/busy_machine.py --ranks 7
/// --load 0,3 --spins default). Ranks with cores of their own are as quick as before, unless a
/// hypervisor takes the cores away.
void sleep_where_cores_are_wanted();

/// Whether a thread sleeps instead of giving way: for a tenth of a second after two calls within
/// that time that each lasted as long as a turn of the scheduler.
class TurnsOfOthers {
 public:
  using Time = std::chrono::steady_clock::time_point;
  bool sleeps(Time now) const { return now < until_; }
  /// A call of sched_yield is over.
  void gave_way(Time begin, Time end);

 private:
  Time until_{}, last_{};
};

}  // namespace cputrain::mpi
