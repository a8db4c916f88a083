#include "compute/executor/frozen_prefix.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cputrain::compute {

FrozenPrefix::FrozenPrefix(const FrozenEnd& end, std::byte* value, std::size_t image_bytes,
                           std::vector<int> sizes, std::size_t most_bytes)
    : end_(end),
      value_(value),
      image_bytes_(image_bytes),
      row_bytes_(row_bytes(end)),
      sizes_(std::move(sizes)),
      store_(row_bytes_, most_bytes),
      scratch_(row_bytes_ * static_cast<std::size_t>(sizes_.front())) {}

/// The images that are not kept, in the smallest pass that has room for them; the last of them
/// stands for those that are missing.
Execution FrozenPrefix::part_of(const Execution& execution) {
  Execution part = execution;
  const auto wanted = static_cast<int>(unknown_.size());
  while (part.size + 1 < sizes_.size() && sizes_[part.size + 1] >= wanted) ++part.size;
  part.images = sizes_[part.size];
  part.most_images = execution.most_images && part.images == execution.images;
  pixels_.clear();
  for (const std::size_t i : unknown_) pixels_.push_back(execution.pixels[i]);
  pixels_.resize(static_cast<std::size_t>(part.images), pixels_.back());
  part.pixels = pixels_;
  return part;
}

/// From what was computed, in the order of unknown_, and what is kept to the order of the images.
void FrozenPrefix::place_rows(const Execution& execution) {
  const auto images = static_cast<std::size_t>(execution.images);
  if (unknown_.size() == images) return;  // they lie where they should
  std::size_t computed = 0;
  for (std::size_t i = 0; i < images; ++i) {
    const bool known = computed == unknown_.size() || unknown_[computed] != i;
    const std::byte* row = known ? store_.find(keys_[i]) : value_ + computed++ * row_bytes_;
    std::memcpy(&scratch_[i * row_bytes_], row, row_bytes_);
  }
  std::memcpy(value_, scratch_.data(), images * row_bytes_);
}

void FrozenPrefix::forward(const Execution& execution,
                           const std::function<void(const Execution&)>& run) {
  keys_.clear();
  unknown_.clear();
  for (const std::uint8_t* image : execution.pixels) {
    keys_.push_back(key_of({image, image_bytes_}));
    if (!store_.find(keys_.back())) unknown_.push_back(keys_.size() - 1);
  }
  if (!unknown_.empty()) run(part_of(execution));
  place_rows(execution);
  for (const std::size_t i : unknown_) store_.add(keys_[i], value_ + i * row_bytes_);
}

}  // namespace cputrain::compute
