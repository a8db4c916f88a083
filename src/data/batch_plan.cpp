#include "data/batch_plan.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <set>
#include <utility>

#include "core/random.h"

namespace cputrain {

std::vector<std::uint32_t> epoch_order(std::size_t n, std::uint64_t seed, int epoch) {
  // Fisher and Yates' shuffle (Durstenfeld's form), each draw a function of (seed, epoch, i).
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  const RandomStream stream(seed, Purpose::order, static_cast<std::uint32_t>(epoch));
  for (std::size_t i = n; i > 1; --i) {
    const auto word = stream.at(static_cast<std::uint32_t>(i))[0];
    std::swap(order[i - 1], order[below(word, static_cast<std::uint32_t>(i))]);
  }
  return order;
}

Range share(std::size_t count, int rank, int size) {
  const auto r = static_cast<std::size_t>(rank), n = static_cast<std::size_t>(size);
  return {count * r / n, count * (r + 1) / n};
}

BatchPlan::BatchPlan(std::size_t samples, std::size_t global_batch, int micro_batch, int rank,
                     int size)
    : samples_(samples),
      global_batch_(global_batch),
      micro_batch_(micro_batch),
      rank_(rank),
      size_(size) {
  assert(global_batch > 0 && micro_batch > 0 && rank >= 0 && rank < size);
}

std::size_t BatchPlan::steps() const { return (samples_ + global_batch_ - 1) / global_batch_; }

std::size_t BatchPlan::images(std::size_t step) const {
  return std::min(global_batch_, samples_ - step * global_batch_);
}

int BatchPlan::micro_batches(std::size_t step) const {
  const auto ranks = static_cast<std::size_t>(size_),
             piece = static_cast<std::size_t>(micro_batch_);
  const std::size_t largest_share = (images(step) + ranks - 1) / ranks;
  return static_cast<int>((largest_share + piece - 1) / piece);
}

Range BatchPlan::piece(std::size_t step, int k) const {
  const Range mine = share(images(step), rank_, size_);
  const auto micro = static_cast<std::size_t>(micro_batch_);
  const std::size_t begin = std::min(mine.end, mine.begin + static_cast<std::size_t>(k) * micro);
  const std::size_t end = std::min(mine.end, begin + micro);
  const std::size_t first = step * global_batch_;
  return {first + begin, first + end};
}

std::vector<int> BatchPlan::sizes() const {
  std::set<int> sizes;
  // All full steps are cut alike, so the first and the last step show every size.
  for (const std::size_t step : {std::size_t{0}, steps() - 1}) {
    if (steps() == 0) break;
    for (int k = 0; k < micro_batches(step); ++k) {
      sizes.insert(static_cast<int>(piece(step, k).size()));
    }
  }
  sizes.erase(0);
  if (sizes.empty()) sizes.insert(1);
  return {sizes.begin(), sizes.end()};
}

}  // namespace cputrain
