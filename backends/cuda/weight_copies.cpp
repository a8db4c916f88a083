#include "backends/cuda/weight_copies.h"

#include "backends/cuda/kernels/elementwise.h"
#include "core/casts.h"

namespace cputrain::cuda {

const void* WeightCopy::of(const float* weights) {
  if (numbers_ == Numbers::exact) return weights;
  if (!copy_.data()) copy_ = DeviceBlock(count() * stored_bytes(numbers_), "copies of weights");
  const auto place = to_size(weights - first());
  return copy_.as<const std::byte>() + place * stored_bytes(numbers_);
}

void WeightCopy::renew(Stream stream) {
  if (!copy_.data() || !stale_.exchange(false)) return;
  round_numbers(stream, numbers_, count(), first(), copy_.data());
}

CopiedWeights WeightCopy::target() const {
  if (!copy_.data()) return {};
  return {.numbers = numbers_, .weights = first(), .copy = copy_.data()};
}

WeightCopy* WeightCopies::find(const void* weights) {
  const std::lock_guard lock(mutex_);
  return copy_of(weights);
}

void WeightCopies::written(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (WeightCopy* const copy = copy_of(bytes.data())) copy->stale_ = true;
}

void WeightCopies::add(std::span<const std::byte> block) {
  const std::lock_guard lock(mutex_);
  copies_.try_emplace(block.data(), numbers_, block);
}

void WeightCopies::remove(std::span<const std::byte> block) {
  decltype(copies_)::node_type removed;  // freed once the lock is released
  const std::lock_guard lock(mutex_);
  removed = copies_.extract(block.data());
}

WeightCopy* WeightCopies::copy_of(const void* weights) {
  const auto* const place = static_cast<const std::byte*>(weights);
  auto copy = copies_.upper_bound(place);
  if (copy == copies_.begin()) return nullptr;
  --copy;
  const std::span<const std::byte> block = copy->second.arena_;
  return place < block.data() + block.size() ? &copy->second : nullptr;
}

}  // namespace cputrain::cuda
