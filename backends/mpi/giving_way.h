#pragma once

namespace cputrain::mpi {

/// From now on a rank that waits inside MPI sleeps where others want its core.
///
/// Open MPI's ranks wait by calling sched_yield for ever. On a core with other work, one such call
/// lasts as long as the scheduler's turn, and ranks that only wait take turns from those that
/// compute: 7 ranks on 2 busy cores were four times as slow. So this program has its own
/// sched_yield, which sleeps for a moment once a call has lasted so long. (Open MPI 5 has the same
/// as threads_pthreads_yield_strategy, Open MPI 4 has nothing.) Ranks with a core of their own
/// never sleep.
void sleep_where_cores_are_wanted();

}  // namespace cputrain::mpi
