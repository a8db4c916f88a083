#include "core/hash.h"

#include <gtest/gtest.h>

#include <string>

namespace cputrain {
namespace {

/// Bit by bit, as the polynomial says.
std::uint32_t plainly(std::string_view text) {
  std::uint32_t crc = 0xffffffff;
  for (const char byte : text) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
  }
  return ~crc;
}

// RFC 3720 (iSCSI), B.4.
TEST(Crc32c, HasThePublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising, falling;
  for (char i = 0; i < 32; ++i) rising += i, falling += static_cast<char>(31 - i);
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(crc32c(falling), 0x113fdb5cu);
}

TEST(Crc32c, IsThatOfThePolynomialAtEveryLengthAndPlace) {
  std::string text;
  for (int i = 0; i < 90; ++i) text += static_cast<char>(i * i * 7 + i);
  for (std::size_t first = 0; first < 20; ++first) {
    for (std::size_t count = 0; first + count <= text.size(); ++count) {
      const std::string_view part = std::string_view(text).substr(first, count);
      ASSERT_EQ(crc32c(part), plainly(part)) << first << " " << count;
    }
  }
}

TEST(Crc32c, GoesOnPieceByPiece) {
  const std::string text = "the quick brown fox jumps over the lazy dog, and back again";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const std::string_view all = text;
    EXPECT_EQ(crc32c(all.substr(cut), crc32c(all.substr(0, cut))), crc32c(all)) << cut;
  }
}

}  // namespace
}  // namespace cputrain
