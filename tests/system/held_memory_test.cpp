#include "system/usage/work_meter.h"

#include <gtest/gtest.h>

#include <vector>

namespace cputrain::system {
namespace {

constexpr const char* kStatus = "Name:\tcputrain\nVmPeak:\t  9000 kB\nVmHWM:\t    1500 kB\n";
constexpr const char* kRollup =
    "5577533c0000-7fff8efcb000 ---p 00000000 00:00 0                          [rollup]\n"
    "Rss:                1200 kB\nPss:                 700 kB\nPss_Anon:            400 kB\n"
    "Pss_File:             76 kB\nPss_Shmem:           250 kB\n";

TEST(HeldMemoryTest, SharedPagesAreDividedAndThePeakIsItsOwn) {
  const auto held = held_memory_of(kStatus, kRollup);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->peak, 1500u * 1024);
  EXPECT_EQ(held->part, (400u + 250 + 300) * 1024);
}

TEST(HeldMemoryTest, SystemsThatDoNotSayAreNotGuessed) {
  EXPECT_FALSE(held_memory_of("", kRollup));
  EXPECT_FALSE(held_memory_of(kStatus, ""));
  EXPECT_FALSE(held_memory_of(kStatus, "Rss: 1200 kB\nPss: 700 kB\n"));  // Linux before 5.4
}

// What is freed again counts as well.
TEST(HeldMemoryTest, APeakStays) {
  const auto before = held_memory();
  if (!before) GTEST_SKIP() << "/proc has no smaps_rollup";
  constexpr std::size_t kBytes = 64 << 20;
  { std::vector<char> touched(kBytes, 1); }
  const auto after = held_memory();
  EXPECT_GE(after->peak, kBytes);
  EXPECT_GE(after->part, before->part);
  EXPECT_LT(before->part, kBytes);
  EXPECT_GE(after->part, kBytes * 9 / 10);
  forget_peak();
  EXPECT_LT(held_memory()->peak, kBytes);
}

}  // namespace
}  // namespace cputrain::system
