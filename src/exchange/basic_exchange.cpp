#include "exchange/basic_exchange.h"

#include <utility>

#include "system/clock.h"

namespace cputrain::exchange {

ExchangeTimes BasicExchange::finish(std::span<const Measure> measures,
                                    const std::function<void(Range)>& update) {
  ExchangeTimes times = std::exchange(earlier_, {});
  system::Stopwatch watch;
  meet();
  const double met = watch.lap();
  const double own_work = reduce();
  const double reduced = watch.lap();
  times.waits += met + reduced - own_work;
  for (const Measure& measure : measures) {
    const Array numbers = Array::of(measure());
    const system::Stopwatch waits;
    sum_over_owners(numbers);
    times.waits += waits.seconds();
  }
  change_owned(update);
  times.optimizer = watch.lap();
  await_weights();
  const double awaited = watch.lap();
  end_update();
  times.straggler_wait += met;
  times.allreduce_exposed += reduced + awaited + watch.lap();
  times.waits += awaited;
  return times;
}

void BasicExchange::change_weights(const std::function<void(Range)>& change) {
  communicator_.barrier();  // none reads them any more
  change_owned(change);
  await_weights();
  end_update();
}

void BasicExchange::change_owned(const std::function<void(Range)>& change) {
  begin_update();
  for (const Range& range : owned_) {
    change(range);
    publish(range);
  }
}

}  // namespace cputrain::exchange
