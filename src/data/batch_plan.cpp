#include "data/batch_plan.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <set>
#include <utility>

#include "core/random/random.h"

namespace cputrain::data {
namespace {

std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

}  // namespace

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
                     int size, PlanOptions options)
    : samples_(samples),
      global_batch_(global_batch),
      micro_batch_(micro_batch),
      rank_(rank),
      size_(size),
      options_(std::move(options)) {
  assert(global_batch > 0 && micro_batch > 0 && rank >= 0 && rank < size);
  assert(options_.accumulate > 0);
}

BatchPlan BatchPlan::in_epoch(int epoch) const {
  BatchPlan plan = *this;
  for (const BatchGrowth& growth : options_.growth) {
    if (epoch >= growth.epochs) {
      plan.global_batch_ = global_batch_ * static_cast<std::size_t>(growth.factor);
    }
  }
  plan.options_.growth.clear();
  return plan;
}

std::size_t BatchPlan::batches() const {
  // A generator reads all samples in local batches and then stops after 1/n of them, rounded down.
  const auto ranks = static_cast<std::size_t>(size_);
  const bool generator = options_.sharding == Sharding::generator;
  const std::size_t batch = generator ? divide_up(global_batch_, ranks) : global_batch_;
  const std::size_t readers = generator ? ranks : 1;
  if (!options_.drop_last) return divide_up(samples_, batch) / readers;
  const auto accumulate = static_cast<std::size_t>(options_.accumulate);
  return samples_ / batch / readers / accumulate * accumulate;
}

std::size_t BatchPlan::steps() const {
  return divide_up(batches(), static_cast<std::size_t>(options_.accumulate));
}

StridedRange BatchPlan::share_of(std::size_t batch, int rank) const {
  const auto ranks = static_cast<std::size_t>(size_), r = static_cast<std::size_t>(rank);
  const std::size_t begin = std::min(samples_, batch * global_batch_);
  const std::size_t count = std::min(global_batch_, samples_ - begin);
  switch (options_.sharding) {
    case Sharding::dealt: {
      const std::size_t micro = static_cast<std::size_t>(micro_batch_), round = micro * ranks;
      const std::size_t left = count % round, before = std::min(left, r * micro);
      return {begin, count / round * micro + std::min(micro, left - before), 1};
    }
    case Sharding::slices: {
      const Range mine = share(count, rank, size_);
      return {begin + mine.begin, mine.size(), 1};
    }
    case Sharding::strided:
    case Sharding::shard_then_batch: {
      // Positions p of the batch with p mod n = rank: element k, k + n, ... of the whole order.
      const std::size_t first = begin + (r + ranks - begin % ranks) % ranks;
      const std::size_t end = begin + count;
      return {first, first < end ? divide_up(end - first, ranks) : 0, ranks};
    }
    case Sharding::generator: {
      const std::size_t local = share(global_batch_, rank, size_).size();
      const std::size_t first = std::min(samples_, batch * local);
      return {first, std::min(local, samples_ - first), 1};
    }
  }
  return {};
}

std::size_t BatchPlan::batch_images(std::size_t batch) const {
  std::size_t images = 0;
  for (int rank = 0; rank < size_; ++rank) images += share_of(batch, rank).count;
  return images;
}

int BatchPlan::micro_batches_of(std::size_t batch) const {
  std::size_t largest = 1;
  for (int rank = 0; rank < size_; ++rank) largest = std::max(largest, share_of(batch, rank).count);
  return static_cast<int>(divide_up(largest, static_cast<std::size_t>(micro_batch_)));
}

std::size_t BatchPlan::last_batch(std::size_t step) const {
  return std::min(batches(), (step + 1) * static_cast<std::size_t>(options_.accumulate));
}

std::size_t BatchPlan::images(std::size_t step) const {
  std::size_t images = 0;
  const auto first = step * static_cast<std::size_t>(options_.accumulate);
  for (std::size_t batch = first; batch < last_batch(step); ++batch) images += batch_images(batch);
  return images;
}

std::vector<StridedRange> BatchPlan::all_pieces(std::size_t step) const {
  std::vector<StridedRange> pieces;
  const auto first = step * static_cast<std::size_t>(options_.accumulate);
  for (std::size_t batch = first; batch < last_batch(step); ++batch) {
    if (options_.sharding != Sharding::generator) {  // shares are parts of one batch
      pieces.push_back({std::min(samples_, batch * global_batch_), batch_images(batch), 1});
      continue;
    }
    for (int rank = 0; rank < size_; ++rank) pieces.push_back(share_of(batch, rank));
  }
  return pieces;
}

int BatchPlan::micro_batches(std::size_t step) const {
  int pieces = 0;
  const auto first = step * static_cast<std::size_t>(options_.accumulate);
  for (std::size_t batch = first; batch < last_batch(step); ++batch) {
    pieces += micro_batches_of(batch);
  }
  return pieces;
}

StridedRange BatchPlan::micro_batch_of(std::size_t batch, int k, int rank) const {
  const StridedRange mine = share_of(batch, rank);
  const auto micro = static_cast<std::size_t>(micro_batch_);
  if (options_.sharding == Sharding::dealt) {
    const std::size_t whole = std::min(samples_ - mine.begin, global_batch_);
    const auto turn = static_cast<std::size_t>(k) * static_cast<std::size_t>(size_) +
                      static_cast<std::size_t>(rank);
    const std::size_t first = std::min(whole, turn * micro);
    return {mine.begin + first, std::min(micro, whole - first), 1};
  }
  const std::size_t begin = std::min(mine.count, static_cast<std::size_t>(k) * micro);
  return {mine.at(begin), std::min(micro, mine.count - begin), mine.stride};
}

StridedRange BatchPlan::piece(std::size_t step, int k) const {
  std::size_t batch = step * static_cast<std::size_t>(options_.accumulate);
  for (int pieces = micro_batches_of(batch); k >= pieces; pieces = micro_batches_of(batch)) {
    k -= pieces;
    ++batch;
  }
  return micro_batch_of(batch, k, rank_);
}

std::vector<std::size_t> BatchPlan::last_images(std::size_t step) const {
  const std::size_t batch = last_batch(step) - 1;
  const int last = micro_batches_of(batch) - 1;
  std::vector<std::size_t> images;
  for (int rank = 0; rank < size_; ++rank) {
    images.push_back(micro_batch_of(batch, last, rank).count);
  }
  return images;
}

std::vector<int> BatchPlan::sizes() const {
  std::vector<int> starts{0};
  for (const BatchGrowth& growth : options_.growth) starts.push_back(growth.epochs);
  std::set<int> sizes;
  for (const int epoch : starts) {
    const BatchPlan plan = in_epoch(epoch);
    // Full batches are cut alike, or in a pattern that repeats after at most as many batches as
    // there are ranks; the last one has what is left.
    const std::size_t batches = plan.batches();
    for (std::size_t batch = 0; batch < batches; ++batch) {
      if (batch == static_cast<std::size_t>(size_)) batch = std::max(batch, batches - 1);
      for (int k = 0; k < plan.micro_batches_of(batch); ++k) {
        sizes.insert(static_cast<int>(plan.micro_batch_of(batch, k, rank_).count));
      }
    }
  }
  sizes.erase(0);
  if (sizes.empty()) sizes.insert(1);
  return {sizes.begin(), sizes.end()};
}

double training_epochs(const BatchPlan& plan, int epochs, std::optional<std::uint64_t> steps) {
  if (!steps) return epochs;
  const auto& growth = plan.options().growth;
  const int grown = growth.empty() ? 0 : growth.back().epochs;  // all later epochs are alike
  auto left = static_cast<double>(*steps);
  for (int epoch = 0;; ++epoch) {
    const auto here = static_cast<double>(plan.in_epoch(epoch).steps());
    if (here == 0) return epoch;
    if (left <= here || epoch == grown) return epoch + left / here;
    left -= here;
  }
}

}  // namespace cputrain::data
