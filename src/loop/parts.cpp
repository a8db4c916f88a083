#include "loop/parts.h"

#include "comm/communicator.h"

namespace cputrain::loop {
namespace {

/// Others change the weights of a node once they have met this rank behind this.
void set_aside(Parts& parts) {
  if (!parts.leads()) return;
  const Array weights = parts.exchange.arenas().weights;
  auto copy = std::make_unique<compute::OwnedArray>(parts.memory(), weights.size, weights.dtype);
  parts.memory().copy(weights.data, copy->array().data, copy->bytes());
  const std::lock_guard lock(parts.weights_mutex);
  parts.aside = std::move(copy);
}

}  // namespace

void with_averages(Parts& parts, const std::function<void()>& work) {
  comm::attempt_together(
      parts.communicator, [&] { set_aside(parts); }, [] {});
  parts.optimizer.swap_averages(parts.exchange);
  work();
  parts.optimizer.swap_averages(parts.exchange);
  parts.communicator.barrier();  // all weights are in their place
  const std::lock_guard lock(parts.weights_mutex);
  parts.aside.reset();
}

}  // namespace cputrain::loop
