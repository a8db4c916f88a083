#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace cputrain::compute {

/// Stands for the pixels of an image: 128 bits, of which two images of a data set are as good as
/// never alike.
struct PixelKey {
  std::uint64_t first, second;
  bool operator==(const PixelKey&) const = default;
};
PixelKey key_of(std::span<const std::uint8_t> pixels);

/// Rows of bytes by the pixels that they were made of.
class FeatureStore {
 public:
  FeatureStore(std::size_t row_bytes, std::size_t most_bytes);

  /// What a row takes, with what finds it again.
  static std::size_t bytes_of_row(std::size_t row_bytes) { return row_bytes + kOverhead; }
  /// Null where there is none.
  const std::byte* find(const PixelKey&) const;
  /// Copies the row, where there is room for it.
  void add(const PixelKey&, const std::byte* row);
  std::size_t rows() const { return places_.size(); }
  /// All that it may come to take.
  std::size_t most_bytes() const { return most_rows_ * bytes_of_row(row_bytes_); }

 private:
  static constexpr std::size_t kOverhead = 64, kRowsOfBlock = 256;
  struct Hash {
    std::size_t operator()(const PixelKey& key) const { return key.first; }
  };

  std::size_t row_bytes_, most_rows_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;  ///< grow with what is kept
  std::unordered_map<PixelKey, std::size_t, Hash> places_;
};

}  // namespace cputrain::compute
