#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cputrain {

/// Finds the numbers of largest magnitude: exactly, in two passes that count, whatever the numbers
/// are, since the bits of a float without its sign are ordered as its size is. Doubles are compared
/// as floats. NaN counts as larger than all, so that it is not overlooked.
class Largest {
 public:
  /// Positions of the `count` largest, ascending; among equals the first. count <= values.size().
  template <class T>
  std::span<const std::uint32_t> find(std::span<const T> values, std::size_t count) {
    assert(count <= values.size());
    positions_.clear();
    if (count == 0) return positions_;
    std::size_t equals = count;  // to take of those at the limit
    const std::uint32_t upper = limit_of(values, kUpperBins, equals, [](std::uint32_t size) {
      return std::int64_t{size >> kLowerBits};
    });
    const std::uint32_t lower = limit_of(values, kLowerBins, equals, [upper](std::uint32_t size) {
      return size >> kLowerBits == upper ? std::int64_t{size & (kLowerBins - 1)} : -1;
    });
    const std::uint32_t limit = upper << kLowerBits | lower;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t size = size_of_number(values[i]);
      if (size < limit) continue;
      if (size == limit && equals-- == 0) {
        equals = 0;
        continue;
      }
      positions_.push_back(static_cast<std::uint32_t>(i));
    }
    return positions_;
  }

 private:
  static constexpr std::uint32_t kLowerBits = 15;
  static constexpr std::uint32_t kLowerBins = 1u << kLowerBits, kUpperBins = 1u << 16;

  template <class T>
  static std::uint32_t size_of_number(T value) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(value)) & 0x7fffffffu;
  }

  /// The bin that holds the `count`-th largest; `count` becomes how many of that bin are wanted.
  template <class T, class Bin>
  std::uint32_t limit_of(std::span<const T> values, std::uint32_t bins, std::size_t& count,
                         Bin bin_of) {
    counts_.assign(bins, 0);
    for (const T value : values) {
      const std::int64_t bin = bin_of(size_of_number(value));
      if (bin >= 0) ++counts_[static_cast<std::size_t>(bin)];
    }
    std::uint32_t bin = bins - 1;
    for (; counts_[bin] < count; --bin) count -= counts_[bin];
    return bin;
  }

  std::vector<std::size_t> counts_;
  std::vector<std::uint32_t> positions_;
};

}  // namespace cputrain
