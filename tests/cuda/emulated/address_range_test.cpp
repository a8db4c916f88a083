#include "emulated/address_range.h"

#include <gtest/gtest.h>

#include <random>

namespace cputrain::emulated {
namespace {

TEST(AddressRange, UsesWhatWasGivenBackLate) {
  AddressRange range(10 * kPageBytes);
  EXPECT_EQ(range.take(kPageBytes), 1 * kPageBytes);
  range.give_back(1 * kPageBytes);
  EXPECT_EQ(range.take(kPageBytes), 3 * kPageBytes);
  EXPECT_EQ(range.take(2 * kPageBytes), 5 * kPageBytes);
  EXPECT_EQ(range.take(2 * kPageBytes), 0u);  // page 8 is free, and 1 of the beginning
  EXPECT_EQ(range.take(kPageBytes), 8 * kPageBytes);
  EXPECT_EQ(range.take(kPageBytes), 1 * kPageBytes);
  EXPECT_EQ(range.take(kPageBytes), 0u);
}

TEST(AddressRange, LargePiecesBeginAtHugePages) {
  AddressRange range(16 * AddressRange::kHuge);
  (void)range.take(kPageBytes);
  EXPECT_EQ(range.take(AddressRange::kHuge), AddressRange::kHuge);
  EXPECT_EQ(range.take(AddressRange::kHuge), 3 * AddressRange::kHuge);
}

/// Pieces of any sizes, given back in any order, never touch each other.
TEST(AddressRange, PiecesNeverTouch) {
  AddressRange range(500 * kPageBytes);
  std::map<std::size_t, std::size_t> pieces;
  std::mt19937 random(11);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    if (!pieces.empty() && random() % 2) {
      const auto chosen = std::next(pieces.begin(), random() % pieces.size());
      range.give_back(chosen->first);
      pieces.erase(chosen);
      continue;
    }
    const std::size_t bytes = (1 + random() % 40) * kPageBytes;
    const std::size_t begin = range.take(bytes);
    if (begin == 0) {
      ++refused;
      continue;
    }
    ASSERT_GE(begin, kPageBytes);
    ASSERT_LE(begin + bytes + kPageBytes, 500 * kPageBytes);
    const auto after = pieces.lower_bound(begin);
    if (after != pieces.end()) {
      ASSERT_LE(begin + bytes + kPageBytes, after->first);
    }
    if (after != pieces.begin()) {
      const auto before = std::prev(after);
      ASSERT_LE(before->first + before->second + kPageBytes, begin);
    }
    pieces[begin] = bytes;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace cputrain::emulated
