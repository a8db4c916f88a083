#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/casts.h"

namespace cputrain::datasets {

/// Whole numbers in bytes of one order, the least significant byte first where it is little-endian.
/// A file may lie about where they are.
class OrderedBytes {
 public:
  OrderedBytes(std::span<const std::uint8_t> bytes, bool little) : bytes_(bytes), little_(little) {}

  bool are_there(std::uint64_t place, std::uint64_t size) const {
    return place <= bytes_.size() && size <= bytes_.size() - place;
  }

  /// The number in `size` bytes, at most 8; 0 where they are not there.
  std::uint64_t at(std::uint64_t place, std::size_t size) const {
    if (!are_there(place, size)) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value = value << 8 | bytes_[to_size(place) + (little_ ? size - 1 - i : i)];
    }
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  bool little_;
};

}  // namespace cputrain::datasets
