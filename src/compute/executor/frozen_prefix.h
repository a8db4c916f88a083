#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "compute/executor/op.h"

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

/// Where the operators end that give the same numbers for an image in every pass.
struct FrozenEnd {
  std::size_t ops;      ///< so many operators
  int node;             ///< the graph's, whose output is all that later ones read of them
  Activation features;  ///< that output
};

/// Runs these operators for images that were not met before, and copies what is kept of others.
class FrozenPrefix {
 public:
  /// `value`: where the features lie. `sizes`: numbers of images that operators can run,
  /// descending.
  FrozenPrefix(const FrozenEnd&, std::byte* value, std::size_t image_bytes, std::vector<int> sizes,
               std::size_t most_bytes);

  static std::size_t row_bytes(const FrozenEnd& end) { return end.features.bytes(1); }
  std::size_t ops() const { return end_.ops; }
  std::size_t most_bytes() const { return store_.most_bytes() + scratch_.size(); }
  /// Images of all passes whose features were kept.
  std::uint64_t taken() const { return taken_; }
  /// Afterwards the features of the images of `execution` are in their place. run(part) calls the
  /// operators.
  void forward(const Execution& execution, const std::function<void(const Execution&)>& run);

 private:
  Execution part_of(const Execution&);
  void place_rows(const Execution&);

  FrozenEnd end_;
  std::byte* value_;
  std::size_t image_bytes_, row_bytes_;
  std::vector<int> sizes_;
  FeatureStore store_;
  std::vector<std::byte> scratch_;  ///< rows of a pass
  std::uint64_t taken_ = 0;
  // The pass at hand:
  std::vector<PixelKey> keys_;
  std::vector<std::size_t> unknown_;  ///< places of images that are not kept
  std::vector<const std::uint8_t*> pixels_;
};

}  // namespace cputrain::compute
