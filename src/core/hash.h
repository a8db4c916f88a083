#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

namespace cputrain {

/// 64-bit FNV-1a over bytes: for fingerprints and equality checks, not against an adversary.
class Fnv1a {
 public:
  Fnv1a& add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      hash_ = (hash_ ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3u;
    }
    return *this;
  }
  Fnv1a& add(std::string_view text) {
    return add(std::as_bytes(std::span(text))).add_number(text.size());
  }
  Fnv1a& add_number(std::uint64_t number) { return add(std::as_bytes(std::span(&number, 1))); }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

/// The number that hexadecimal digits are; nothing for any other text.
template <class T>
std::optional<T> hexadecimal(std::string_view digits) {
  T value{};
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  return error == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

/// CRC-32C (Castagnoli), as in iSCSI: of "123456789" it is e3069283. It finds every flipped bit,
/// and every burst of wrong bits that is no longer than 32. Piece by piece: `before` is that of all
/// bytes before these.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);
/// CRC-32, as in zip archives and Ethernet: of "123456789" it is cbf43926.
std::uint32_t crc32_zip(std::span<const std::byte> bytes, std::uint32_t before = 0);
inline std::uint32_t crc32c(std::string_view text, std::uint32_t before = 0) {
  return crc32c(std::as_bytes(std::span(text)), before);
}

}  // namespace cputrain
