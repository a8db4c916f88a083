#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace cputrain::exchange {

/// Finds the numbers of largest magnitude, exactly and whatever the numbers are: one pass counts
/// them by size, roughly, and another takes those that may be among the largest, which are then
/// sorted. The bits of a float without its sign are ordered as its size is. Doubles are compared as
/// floats. NaN counts as larger than all, so that it is not overlooked.
class Largest {
 public:
  /// Positions of the `count` largest, ascending; among equals the first. count <= values.size().
  template <class T>
  std::span<const std::uint32_t> find(std::span<const T> values, std::size_t count) {
    assert(count <= values.size());
    positions_.clear();
    if (count == 0) return positions_;
    const std::uint32_t least = least_bin(values, count) << kFineBits;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (size_of_number(values[i]) >= least) positions_.push_back(static_cast<std::uint32_t>(i));
    }
    keep_largest(values, count);
    return positions_;
  }

 private:
  static constexpr std::uint32_t kFineBits = 19, kBins = 1u << (31 - kFineBits);
  static constexpr std::size_t kTables = 4;

  template <class T>
  static std::uint32_t size_of_number(T value) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(value)) & 0x7fffffffu;
  }

  /// The bin that holds the `count`-th largest. Neighbours are counted in different tables: many
  /// gradients are zero, and a counter can be increased only every few cycles.
  template <class T>
  std::uint32_t least_bin(std::span<const T> values, std::size_t count) {
    counts_.assign(kTables * kBins, 0);
    const std::size_t whole = values.size() - values.size() % kTables;
    for (std::size_t i = 0; i < whole; i += kTables) {
      for (std::size_t t = 0; t < kTables; ++t) {
        ++counts_[t * kBins + (size_of_number(values[i + t]) >> kFineBits)];
      }
    }
    for (const T value : values.subspan(whole)) ++counts_[size_of_number(value) >> kFineBits];
    std::size_t above = 0;
    for (std::uint32_t bin = kBins - 1;; --bin) {
      for (std::size_t t = 0; t < kTables; ++t) above += counts_[t * kBins + bin];
      if (above >= count) return bin;
    }
  }

  /// Keeps `count` of the positions found, which are ascending and enough.
  template <class T>
  void keep_largest(std::span<const T> values, std::size_t count) {
    if (positions_.size() == count) return;
    sizes_.clear();
    for (const std::uint32_t i : positions_) sizes_.push_back(size_of_number(values[i]));
    const auto last = sizes_.begin() + static_cast<std::ptrdiff_t>(count - 1);
    std::ranges::nth_element(sizes_, last, std::greater{});
    const std::uint32_t limit = *last;
    auto equals = std::count(sizes_.begin(), last + 1, limit);  // to take of those at the limit
    std::erase_if(positions_, [&](std::uint32_t i) {
      const std::uint32_t size = size_of_number(values[i]);
      return size < limit || (size == limit && equals-- <= 0);
    });
  }

  std::vector<std::uint32_t> counts_;
  std::vector<std::uint32_t> positions_;
  std::vector<std::uint32_t> sizes_;
};

}  // namespace cputrain::exchange
