#include "backends/cuda/weight_copies.h"

#include <algorithm>

#include "backends/cuda/kernels/elementwise.h"

namespace cputrain::cuda {

WeightCopy::WeightCopy(WeightCopies& all, Numbers numbers) : all_(all), numbers_(numbers) {}

WeightCopy::~WeightCopy() {
  const std::lock_guard lock(all_.mutex_);
  std::erase(all_.copies_, this);
}

std::size_t WeightCopy::bytes(const compute::ParameterLayout& layout) const {
  return numbers_ == Numbers::exact ? 0 : layout.arena_size * stored_bytes(numbers_);
}

const void* WeightCopy::of(const Array& arena, const float* weights) {
  if (numbers_ == Numbers::exact) return weights;
  if (!copy_.data()) {
    copy_ = DeviceBlock(arena.size * stored_bytes(numbers_), "copies of weights");
    const std::lock_guard lock(all_.mutex_);
    weights_ = arena;
    all_.copies_.push_back(this);
  }
  const auto place = static_cast<std::size_t>(weights - arena.as<float>().data());
  return static_cast<const std::byte*>(copy_.data()) + place * stored_bytes(numbers_);
}

void WeightCopy::renew(Stream stream) {
  if (!copy_.data() || !stale_.exchange(false)) return;
  round_numbers(stream, numbers_, weights_.size, weights_.as<float>().data(), copy_.data());
}

CopiedWeights WeightCopy::target() const {
  if (!copy_.data()) return {};
  return {.numbers = numbers_, .weights = weights_.as<float>().data(), .copy = copy_.data()};
}

bool WeightCopy::lies_beside(std::span<const std::byte> bytes) const {
  const std::span<const std::byte> weights = weights_.bytes();
  return bytes.data() < weights.data() + weights.size() &&
         weights.data() < bytes.data() + bytes.size();
}

void WeightCopies::written(std::span<const std::byte> bytes, const WeightCopy* but) {
  const std::lock_guard lock(mutex_);
  for (WeightCopy* const copy : copies_) {
    if (copy != but && copy->lies_beside(bytes)) copy->stale_ = true;
  }
}

const WeightCopy* WeightCopies::beside(const Array& array) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      copies_, [&](const WeightCopy* copy) { return copy->lies_beside(array.bytes()); });
  return found == copies_.end() ? nullptr : *found;
}

}  // namespace cputrain::cuda
