#pragma once

#include <memory>

#include "comm/exchange.h"

namespace cputrain {

/// Sums over all ranks that travel while the caller computes. Every rank starts the same sums in
/// the same order.
class TravellingSums {
 public:
  virtual ~TravellingSums() = default;
  /// Starts the sum of these numbers over all ranks, in place; they must not be touched until
  /// wait() has returned.
  virtual void start(Array numbers) = 0;
  /// Lets started sums move on; returns at once.
  virtual void progress() = 0;
  /// Returns when every rank has called it: what a rank waits here, it waits for the slowest.
  virtual void meet() = 0;
  /// Returns when all started sums are complete.
  virtual void wait() = 0;
};

/// The exchange in which every rank keeps a replica of the weights and updates all of it: buckets
/// of gradients are summed by an allreduce each, in place, started as soon as backward has
/// finished them. All ranks then apply the same update to the same numbers.
/// Bytes sent are those of the allreduce; memory is two arenas a rank.
std::unique_ptr<GradientExchange> make_allreduce_exchange(const ExchangePlan&,
                                                          std::unique_ptr<TravellingSums>);

}  // namespace cputrain
