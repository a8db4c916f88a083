#include "exchange/basic_exchange.h"

#include <algorithm>
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

void broadcast_array(comm::Communicator& communicator, compute::Memory& memory, const Array& array,
                     int root) {
  if (memory.is_host()) return communicator.broadcast(array.bytes(), root);
  const compute::OwnedArray staged(compute::host_memory(),
                                   std::min(array.size, compute::piece_elements(array.dtype)),
                                   array.dtype);
  for (std::size_t begin = 0; begin < array.size; begin += staged.array().size) {
    const Array segment = array.slice(begin, std::min(array.size, begin + staged.array().size));
    const Array copy = staged.array().slice(0, segment.size);
    if (communicator.rank() == root) memory.read(segment.data, copy.bytes());
    communicator.broadcast(copy.bytes(), root);
    if (communicator.rank() != root) memory.write(copy.bytes(), segment.data);
  }
}

}  // namespace cputrain::exchange
