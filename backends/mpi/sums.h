#pragma once

#include <memory>

#include "comm/allreduce_exchange.h"

namespace cputrain {

/// Two ways in which MPI sums buckets over the ranks of MPI_COMM_WORLD.
///
/// All ranks get the same bits in both, though MPI only recommends it: Open MPI's algorithms (ring,
/// recursive doubling, Rabenseifner, reduce and broadcast) form each sum either once, or on both
/// partners of a pair as a + b and b + a.

/// MPI_Iallreduce as soon as a bucket is complete: the network works while this rank computes. MPI
/// moves data only while somebody calls it (Open MPI has no progress thread), so every ready()
/// drives it, too.
std::unique_ptr<TravellingSums> make_sums_during_backward();

/// MPI_Allreduce when all ranks have arrived, piece by piece. Right for ranks of one node: nothing
/// could be hidden there, since the cores that copy are those that compute, and pieces that stay in
/// the cache take a half to a quarter of the time (53 MB, 2 cores, 4 ranks: Iallreduce and
/// Allreduce of the whole about 100 ms, in pieces of 1 to 8 MiB 50 ms).
std::unique_ptr<TravellingSums> make_sums_after_backward();

}  // namespace cputrain
