#include "compute/executor/frozen_prefix.h"

#include <array>
#include <cstring>
#include <utility>

namespace cputrain::compute {
namespace {

/// Odd numbers without a pattern: digits of sqrt(2), sqrt(3), sqrt(5) and sqrt(7) in base 2^64.
constexpr std::array<std::uint64_t, 4> kOdd{0x6a09e667f3bcc909, 0xbb67ae8584caa73b,
                                            0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1};

__extension__ using Wide = unsigned __int128;

/// Both halves of a product, one upon the other: every bit of the result depends on all of both.
std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t word_at(const std::uint8_t* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace

PixelKey key_of(std::span<const std::uint8_t> pixels) {
  std::uint64_t a = kOdd[0] ^ pixels.size(), b = kOdd[1];
  std::size_t i = 0;
  for (; i + 16 <= pixels.size(); i += 16) {
    const std::uint64_t low = word_at(&pixels[i]), high = word_at(&pixels[i + 8]);
    a = fold(a ^ low, kOdd[2] ^ high);
    b = fold(b ^ high, kOdd[3] ^ low) + low;
  }
  for (; i < pixels.size(); ++i) {
    a = fold(a ^ pixels[i], kOdd[2]);
    b = fold(b + pixels[i], kOdd[3]);
  }
  return {fold(a ^ kOdd[1], b ^ kOdd[0]), fold(a + kOdd[3], b ^ kOdd[2])};
}

FeatureStore::FeatureStore(std::size_t row_bytes, std::size_t most_bytes)
    : row_bytes_(row_bytes), most_rows_(most_bytes / bytes_of_row(row_bytes)) {}

const std::byte* FeatureStore::find(const PixelKey& key) const {
  const auto found = places_.find(key);
  if (found == places_.end()) return nullptr;
  return blocks_[found->second / kRowsOfBlock].get() + found->second % kRowsOfBlock * row_bytes_;
}

void FeatureStore::add(const PixelKey& key, const std::byte* row) {
  const std::size_t place = places_.size();
  if (place == most_rows_ || !places_.emplace(key, place).second) return;
  if (place % kRowsOfBlock == 0) {
    blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(kRowsOfBlock * row_bytes_));
  }
  std::memcpy(blocks_.back().get() + place % kRowsOfBlock * row_bytes_, row, row_bytes_);
}

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
  taken_ += keys_.size() - unknown_.size();
  if (!unknown_.empty()) run(part_of(execution));
  place_rows(execution);
  for (const std::size_t i : unknown_) store_.add(keys_[i], value_ + i * row_bytes_);
}

}  // namespace cputrain::compute
