#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cputrain {

/// CRC-32C (Castagnoli), as in iSCSI: of "123456789" it is e3069283. It finds every flipped bit,
/// and every burst of wrong bits that is no longer than 32. Piece by piece: `before` is that of all
/// bytes before these.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);
inline std::uint32_t crc32c(std::string_view text, std::uint32_t before = 0) {
  return crc32c(std::as_bytes(std::span(text)), before);
}

}  // namespace cputrain
