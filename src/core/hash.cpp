#include "core/hash.h"

#include <array>
#include <bit>
#include <cstring>

namespace cputrain {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr std::size_t kSlices = 16;
using Tables = std::array<std::array<std::uint32_t, 256>, kSlices>;

/// tables[k][b]: the CRC of byte b followed by k zero bytes.
constexpr Tables make_tables(std::uint32_t polynomial) {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ polynomial : crc >> 1;
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < kSlices; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = tables[0][crc & 0xff] ^ crc >> 8;
    }
  }
  return tables;
}

// Polynomials reflected.
constexpr Tables kCastagnoli = make_tables(0x82f63b78), kEthernet = make_tables(0xedb88320);

std::uint32_t word_at(const std::byte* place) {
  std::uint32_t word;
  std::memcpy(&word, place, sizeof word);
  return word;
}

/// What the four bytes of a word add, followed by `after` zero bytes.
std::uint32_t of_word(const Tables& tables, std::uint32_t word, std::size_t after) {
  return tables[after + 3][word & 0xff] ^ tables[after + 2][word >> 8 & 0xff] ^
         tables[after + 1][word >> 16 & 0xff] ^ tables[after][word >> 24];
}

/// "Slicing" (Kounavis and Berry, "A systematic approach to building high performance
/// software-based CRC generators", ISCC 2005), with sixteen tables: CRCs are linear, so those of
/// sixteen bytes are looked up side by side, where byte after byte each waits for the one before.
std::uint32_t crc_of(const Tables& tables, std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  for (; bytes.size() >= kSlices; bytes = bytes.subspan(kSlices)) {
    const std::byte* place = bytes.data();
    crc = of_word(tables, word_at(place) ^ crc, 12) ^ of_word(tables, word_at(place + 4), 8) ^
          of_word(tables, word_at(place + 8), 4) ^ of_word(tables, word_at(place + 12), 0);
  }
  for (const std::byte byte : bytes) {
    crc = tables[0][(crc ^ static_cast<std::uint32_t>(byte)) & 0xff] ^ crc >> 8;
  }
  return ~crc;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  return crc_of(kCastagnoli, bytes, before);
}

std::uint32_t crc32_zip(std::span<const std::byte> bytes, std::uint32_t before) {
  return crc_of(kEthernet, bytes, before);
}

}  // namespace cputrain
