#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/allreduce.h"
#include "compute/device_sums.h"
#include "compute/parameters/parameters.h"

namespace cputrain::exchange {

class KeptParts;

/// Where the time of one exchange went on this rank, in seconds.
struct ExchangeTimes {
  double straggler_wait = 0;     ///< waiting for the last rank to arrive
  double allreduce_exposed = 0;  ///< communication that backward did not hide
  double optimizer = 0;
  double within_ready = 0;  ///< how much of it passed in calls of ready(), inside backward
  /// How much of it passed in calls that last until other ranks have come: not in work of this
  /// rank's own, for which the others wait there.
  double waits = 0;
};

/// What an exchange has allocated, in bytes, and what a library will.
struct ExchangeMemory {
  std::size_t own = 0;          ///< this rank's
  std::size_t node = 0;         ///< once per node, whatever the number of its ranks
  std::size_t own_weights = 0;  ///< the part of `own` that is weights
  std::size_t own_buffers = 0;  ///< the part of it that sums keep, always in the host's memory
  /// Beside `own`, of this rank's device: what a library that sums there takes, by estimate.
  std::size_t library = 0;
};

/// Looks at the reduced gradients of all owned ranges, changes them if need be, and returns numbers
/// to be summed over the owners of ranges: norms of the whole, which must be known before the first
/// weight changes. The exchange puts the sums into the same memory.
using Measure = std::function<std::span<double>()>;

/// Gradients in, new weights out: reduces gradients over all ranks, has the owned ranges updated
/// and publishes the new weights. Owns the arenas, since where the sum is formed and how many
/// copies of the weights each node has is the implementation's secret (an allreduce with a replica
/// per rank, slices over shared memory with one copy per node, a parameter server, ...).
///
/// Every rank makes the same calls in the same order, ranks without images included.
class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  /// The weights, and the gradients as update() finds them: summed over ranks where this rank owns
  /// them.
  virtual compute::Arenas arenas() const = 0;
  /// What lane `lane` of this rank computes on: the program's own arenas where it has one lane.
  virtual compute::Arenas lane_arenas([[maybe_unused]] int lane) const { return arenas(); }

  /// The slices of the arena whose weights this rank updates: optimizer state is kept for these
  /// only.
  virtual std::span<const Range> owned() const = 0;

  /// Backward of micro-batch k of this step begins (the last one or not): how it must write. A step
  /// starts with k = 0.
  virtual compute::Accumulate begin(int k, bool last) = 0;

  /// This micro-batch's gradients [0, n) are final, and weights [0, n) are not read any more, once
  /// a device has come to `after`; null: already. In the last one, buckets that are complete start
  /// to travel while backward goes on; events of other micro-batches are not waited for.
  virtual void ready(std::size_t n, compute::Event* after) = 0;
  void ready(std::size_t n) { ready(n, nullptr); }

  /// Waits until the sums are there, calls the measures one after the other, each with the sums of
  /// the one before at hand, then update for every owned range, and returns when this rank's
  /// weights are those of all ranks. Where every rank owns everything, a measure is whole already;
  /// where ranks own different ranges, the exchange adds the numbers up over ranks. `ready(size of
  /// the gradients)` must have been called. Where they lie on a device and nothing is added to
  /// them, finish() does not wait for it: update() is then to come behind them there.
  virtual ExchangeTimes finish(std::span<const Measure> measures,
                               const std::function<void(Range)>& update) = 0;
  ExchangeTimes finish(const std::function<void(Range)>& update) { return finish({}, update); }

  /// Sums gradients as part of this step's last backward pass (Backward::sums), beside it. Null:
  /// ready() or finish() has them summed. `images`: those of that micro-batch, by rank, which all
  /// ranks name alike. Other numbers get another object: a device that repeats a pass repeats its
  /// sums, for which all ranks must then repeat theirs.
  virtual const compute::PassSums* pass_sums([[maybe_unused]] std::span<const std::size_t> images) {
    return nullptr;
  }
  /// Whether behind that pass this rank's gradients are the sums, where they lie: then the update
  /// may come there at once, and finish() need not do it. Asked behind pass_sums().
  virtual bool sums_in_backward() const { return false; }

  /// Calls change() for every owned range of the weights, outside of a step, and returns when this
  /// rank's weights are those of all ranks, as finish() does. Collective.
  virtual void change_weights(const std::function<void(Range)>& change) = 0;

  /// Gives the weights of rank 0 to all ranks. Collective.
  virtual void spread_weights() = 0;

  /// How often the weights have changed, times two; odd while any rank changes them. Between two
  /// equal even answers the weights were those of a completed step. For other threads.
  virtual std::uint64_t weights_version() const = 0;

  /// What the sum of gradients keeps from step to step: a part of the training. Null where it keeps
  /// nothing. Between two steps.
  virtual KeptParts* kept_parts() { return nullptr; }

  virtual ExchangeMemory memory() const = 0;
  /// "slices over shared memory": for the log.
  virtual std::string describe() const = 0;
};

/// Ends of the buckets: parameter boundaries, in arena order, each bucket at least `bucket_bytes`
/// (the last may be smaller). The same on every rank.
std::vector<std::size_t> bucket_ends(const compute::ParameterLayout&, std::size_t bucket_bytes);

}  // namespace cputrain::exchange
