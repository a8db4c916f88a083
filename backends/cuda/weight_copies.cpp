#include "backends/cuda/weight_copies.h"

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

bool WeightCopy::lies_beside(const std::byte* begin, std::size_t bytes) const {
  const auto* const weights = static_cast<const std::byte*>(weights_.data);
  return begin < weights + weights_.bytes().size() && weights < begin + bytes;
}

void WeightCopies::written(const void* begin, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (WeightCopy* const copy : copies_) {
    if (copy->lies_beside(static_cast<const std::byte*>(begin), bytes)) copy->stale_ = true;
  }
}

}  // namespace cputrain::cuda
