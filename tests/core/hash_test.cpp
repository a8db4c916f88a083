#include "core/hash.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/made_zip.h"

namespace cputrain {
namespace {

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

// The check value that the catalogues of CRCs give.
TEST(Crc32Zip, HasThePublishedValue) {
  const std::string digits = "123456789";
  EXPECT_EQ(crc32_zip(std::as_bytes(std::span(digits))), 0xcbf43926u);
}

TEST(Crc32c, IsThatOfThePolynomialAtEveryLengthAndPlace) {
  std::string text;
  for (int i = 0; i < 90; ++i) text += static_cast<char>(i * i * 7 + i);
  for (std::size_t first = 0; first < 20; ++first) {
    for (std::size_t count = 0; first + count <= text.size(); ++count) {
      const std::string_view part = std::string_view(text).substr(first, count);
      ASSERT_EQ(crc32c(part), testing::plain_crc(part, 0x82f63b78)) << first << " " << count;
      ASSERT_EQ(crc32_zip(std::as_bytes(std::span(part))), testing::plain_crc(part, 0xedb88320));
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
