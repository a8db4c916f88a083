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
  begin_update();
  for (const Range& range : owned_) {
    update(range);
    publish(range);
  }
  times.optimizer = watch.lap();
  await_weights();
  const double awaited = watch.lap();
  end_update();
  times.straggler_wait += met;
  times.allreduce_exposed += reduced + awaited + watch.lap();
  times.waits += awaited;
  return times;
}

}  // namespace cputrain::exchange
