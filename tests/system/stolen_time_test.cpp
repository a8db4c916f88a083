#include "system/lost_time.h"

#include <gtest/gtest.h>

namespace cputrain::system {
namespace {

using Ticks = std::vector<CpuTicks>;

TEST(StolenTime, ReadsTheLinesOfSingleCpus) {
  const Ticks ticks = cpu_ticks(
      "cpu  10 20 30 40 50 60 70 80 90 100\n"
      "cpu0 1 2 3 4 5 6 7 8 9 10\n"
      "cpu11 100 0 50 700 20 1 2 30 0 0\n"
      "intr 5 6 7\n");
  EXPECT_EQ(ticks, (Ticks{{0, 1 + 2 + 3 + 6 + 7, 4 + 5, 8}, {11, 153, 720, 30}}));
}

TEST(StolenTime, SkipsWhatItCannotRead) {
  EXPECT_TRUE(cpu_ticks("").empty());
  EXPECT_TRUE(cpu_ticks("cpu\ncpux 1 2 3 4 5 6 7 8\ncpu0 1 2 3\nnothing").empty());
}

TEST(StolenTime, IsAPartOfTheTimeInWhichCpusHadWork) {
  const Ticks before{{0, 100, 50, 10}, {1, 200, 50, 20}};
  const Ticks after{{0, 190, 50, 20}, {1, 280, 50, 40}};  // 100 ticks later
  EXPECT_DOUBLE_EQ(*stolen_part(before, after, {0}), 0.1);
  EXPECT_DOUBLE_EQ(*stolen_part(before, after, {1}), 0.2);
  EXPECT_DOUBLE_EQ(*stolen_part(before, after, {}), 0.15);
  EXPECT_DOUBLE_EQ(*stolen_part(before, after, {0, 1, 2}), 0.15);
  EXPECT_FALSE(stolen_part(before, after, {2}));  // not known
  EXPECT_FALSE(stolen_part({}, after, {}));
}

TEST(StolenTime, OfAnIdleCpuIsNobodysLoss) {
  const Ticks before{{0, 0, 0, 0}, {1, 0, 0, 0}};
  EXPECT_EQ(*stolen_part(before, {{0, 100, 0, 0}, {1, 0, 100, 80}}, {}), 0);
  // A thread that moved: half of each CPU's time, so half of what each lost.
  EXPECT_DOUBLE_EQ(*stolen_part(before, {{0, 50, 50, 100}, {1, 50, 50, 0}}, {}), 50.0 / 150);
}

TEST(StolenTime, OfACpuThatGotNothingIsAll) {
  EXPECT_EQ(*stolen_part({{0, 7, 7, 7}}, {{0, 7, 7, 107}}, {}), 1);
  EXPECT_EQ(*stolen_part({{0, 7, 7, 7}}, {{0, 7, 7, 7}}, {}), 0);
}

TEST(StolenTime, CountersMayGoBack) {
  EXPECT_EQ(*stolen_part({{0, 0, 10, 0}}, {{0, 5, 5, 5}}, {}), 0.5);
  EXPECT_EQ(*stolen_part({{0, 0, 0, 9}, {1, 0, 0, 0}}, {{0, 50, 0, 0}, {1, 25, 0, 25}}, {}), 0.25);
  EXPECT_FALSE(stolen_part({{0, 1, 1, 1}}, {{1, 2, 2, 2}}, {}));  // another CPU
}

TEST(StolenTime, OfThisMachineIsAPart) {
  StolenTime stolen({});
  const auto part = stolen.part_since_last();
  if (!part) GTEST_SKIP() << "this system does not tell";
  EXPECT_GE(*part, 0);
  EXPECT_LE(*part, 1);
}

}  // namespace
}  // namespace cputrain::system
