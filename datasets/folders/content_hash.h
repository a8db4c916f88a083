#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace cputrain::datasets {

/// FNV-1a with 64 bits (Fowler, Noll, Vo): distinguishes contents that differ by accident, not
/// contents made to collide.
class ContentHash {
 public:
  ContentHash& add(std::span<const std::uint8_t> bytes) {
    for (const std::uint8_t byte : bytes) value_ = (value_ ^ byte) * 0x100000001B3u;
    return *this;
  }
  /// Text with its length, so that "ab" + "c" and "a" + "bc" differ.
  ContentHash& add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    return add({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }
  ContentHash& add(std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) {
      value_ = (value_ ^ ((number >> shift) & 0xFF)) * 0x100000001B3u;
    }
    return *this;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325u;
};

}  // namespace cputrain::datasets
