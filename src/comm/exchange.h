#pragma once

#include <functional>
#include <span>
#include <vector>

#include "compute/parameters.h"

namespace cputrain {

/// Where the time of one exchange went on this rank, in seconds.
struct ExchangeTimes {
  double straggler_wait = 0;     ///< waiting for the last rank to arrive
  double allreduce_exposed = 0;  ///< communication that backward did not hide
  double optimizer = 0;
};

/// Looks at the reduced gradients of all owned ranges, changes them if need be, and returns numbers
/// to be summed over the owners of ranges: norms of the whole, which must be known before the first
/// weight changes. The exchange puts the sums into the same memory.
using Measure = std::function<std::span<double>()>;

/// Gradients in, new weights out: reduces gradients over all ranks, has the owned ranges updated
/// and publishes the new weights. Owns the arenas, since where the sum is formed and how many
/// copies of the weights a node keeps is the implementation's secret (an allreduce with a replica
/// a rank, slices over shared memory with one copy a node, a parameter server, ...).
///
/// Every rank makes the same calls in the same order, ranks without images included.
class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  virtual Arenas arenas() const = 0;

  /// The parts of the arena whose weights this rank updates: optimizer state is kept for these
  /// only.
  virtual std::span<const Range> owned() const = 0;

  /// Gradients [0, n) are final, weights [0, n) are not read any more in this step. Buckets that
  /// are complete start to travel while backward goes on.
  virtual void ready(std::size_t n) = 0;

  /// Waits until the sums are there, calls the measures one after the other, each with the sums of
  /// the one before at hand, then update for every owned range, and returns when this rank's
  /// weights are those of all ranks. Where every rank owns everything, a measure is whole already;
  /// where ranks own different ranges, the exchange adds the numbers up over ranks. `ready(size of
  /// the gradients)` must have been called.
  virtual ExchangeTimes finish(std::span<const Measure> measures,
                               const std::function<void(Range)>& update) = 0;
  ExchangeTimes finish(const std::function<void(Range)>& update) { return finish({}, update); }
};

/// What an exchange must know when it is made.
struct ExchangePlan {
  ParameterLayout layout;
  std::size_t bucket_bytes = 0;  ///< cut buckets at about this size, at parameter boundaries
};

/// Ends of the buckets: parameter boundaries, in arena order, each bucket at least `bucket_bytes`
/// (the last may be smaller). The same on every rank.
std::vector<std::size_t> bucket_ends(const ExchangePlan&);

}  // namespace cputrain
