#pragma once

#include <vector>

#include "comm/communicator.h"
#include "compute/memory.h"
#include "exchange/exchange.h"

namespace cputrain::exchange {

/// What the ways to exchange gradients do alike: the order of a step, and where its time goes.
class BasicExchange : public GradientExchange {
 public:
  explicit BasicExchange(comm::Communicator& communicator) : communicator_(communicator) {}

  std::span<const Range> owned() const final { return owned_; }
  compute::Accumulate begin(int k, bool last) override {
    last_ = last;
    return k == 0 ? compute::Accumulate::overwrite : compute::Accumulate::add;
  }
  using GradientExchange::ready;
  void ready(std::size_t n, compute::Event* after) override {
    if (last_) finish_gradients(n, after);
  }
  using GradientExchange::finish;
  ExchangeTimes finish(std::span<const Measure>, const std::function<void(Range)>& update) final;
  void change_weights(const std::function<void(Range)>& change) final;

 protected:
  // The parts of a step, in their order. By default this rank alone owns everything.

  /// Gradients [0, n) of the last micro-batch are final behind `after`.
  virtual void finish_gradients(std::size_t, compute::Event*) {}
  /// Until all ranks have come.
  virtual void meet() { communicator_.barrier(); }
  /// Forms the sums of what is owned. Returns the seconds of it without waiting for others.
  virtual double reduce() { return 0; }
  /// Adds a measure's numbers up over the owners of other slices.
  virtual void sum_over_owners(const Array&) {}
  virtual void begin_update() {}
  /// After the update of an owned range.
  virtual void publish(Range) {}
  /// Until the others' weights can be had.
  virtual void await_weights() {}
  virtual void end_update() {}

  comm::Communicator& communicator_;
  std::vector<Range> owned_;
  ExchangeTimes earlier_;  ///< this step's, before finish()

 private:
  void change_owned(const std::function<void(Range)>& change);

  bool last_ = true;  ///< micro-batch of the step
};

/// Gives rank `root`'s array to all ranks, each of which has one as long in its memory; by way of
/// the host where that is another. Collective.
void broadcast_array(comm::Communicator&, compute::Memory&, const Array&, int root);

}  // namespace cputrain::exchange
