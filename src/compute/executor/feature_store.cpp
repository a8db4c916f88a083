#include "compute/executor/feature_store.h"

#include <array>
#include <cstring>

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

}  // namespace cputrain::compute
