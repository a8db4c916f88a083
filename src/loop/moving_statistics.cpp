#include "loop/moving_statistics.h"

#include <span>
#include <vector>

namespace cputrain::loop {
namespace {

/// Calls f(array) for every parameter that is averaged, in one order on every rank.
template <class F>
void for_averaged(const WeightsArena& weights, const F& f) {
  for (const compute::Parameter& parameter : weights.layout.parameters) {
    if (parameter.averaged) f(weights.values.slice(parameter.range.begin, parameter.range.end));
  }
}

}  // namespace

bool average_statistics(const WeightsArena& weights, double own_images,
                        comm::Communicator& communicator, std::mutex& weights_mutex) {
  std::vector<double> sums;
  for_averaged(weights, [&](const Array& array) {
    for (const double value : compute::read_numbers(weights.memory, array)) {
      sums.push_back(value * own_images);
    }
  });
  if (sums.empty()) return false;
  sums.push_back(own_images);
  communicator.sum(Array::of<double>(sums));
  const double images = sums.back();
  if (images == 0) return false;
  for (double& sum : sums) sum /= images;
  const std::lock_guard lock(weights_mutex);
  std::size_t next = 0;
  for_averaged(weights, [&](const Array& array) {
    compute::write_numbers(weights.memory, std::span(sums).subspan(next, array.size), array);
    next += array.size;
  });
  return true;
}

}  // namespace cputrain::loop
