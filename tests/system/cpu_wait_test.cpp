#include "system/usage/work_meter.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <initializer_list>
#include <thread>

namespace cputrain::system {
namespace {

/// Threads by their numbers, and for how long each ran and waited.
std::vector<ThreadState> threads(std::initializer_list<std::array<double, 3>> times) {
  std::vector<ThreadState> all;
  for (const auto& [thread, ran, waited] : times) {
    all.push_back({.thread = static_cast<int>(thread), .ran = ran, .waited = waited});
  }
  return all;
}

TEST(CpuWait, IsThePartOfTheTimeForWhichThreadsWantedACpu) {
  const auto before = threads({{1, 100, 50}, {2, 1000, 0}});
  EXPECT_DOUBLE_EQ(*waited_part(before, threads({{1, 190, 60}, {2, 1090, 10}})), 0.1);
  // the other slept
  EXPECT_DOUBLE_EQ(*waited_part(before, threads({{1, 200, 150}, {2, 1000, 0}})), 0.5);
  EXPECT_DOUBLE_EQ(*waited_part(before, threads({{1, 175, 50}, {2, 1000, 0}})), 0);
}

TEST(CpuWait, ThreadsComeAndGo) {
  const auto before = threads({{1, 100, 50}, {2, 1000, 900}});
  // 2 has ended, 3 is new and counts from its beginning.
  EXPECT_DOUBLE_EQ(*waited_part(before, threads({{1, 160, 60}, {3, 15, 15}})), 25.0 / 100);
  // Another thread has the number of one that has ended.
  EXPECT_DOUBLE_EQ(*waited_part(before, threads({{2, 30, 10}})), 0.25);
}

TEST(CpuWait, IsNotKnownWhereNothingIsCounted) {
  EXPECT_FALSE(waited_part({}, {}));
  EXPECT_FALSE(waited_part(threads({{1, 5, 5}}), {}));
  EXPECT_FALSE(waited_part({}, threads({{1, 0, 0}})));
  EXPECT_FALSE(waited_part(threads({{1, 0, 0}}), threads({{1, 0, 0}})));
  // a kernel that keeps no such statistics
  EXPECT_FALSE(waited_part({{.thread = 1, .ran = 1}}, {{.thread = 1, .ran = 2}}));
  EXPECT_EQ(waited_part({{.thread = 1}}, threads({{1, 3, 1}})), 0.25);  // it counts from now on
}

TEST(CpuWait, NamesOtherWorkOnlyWhereThereIsRoomForTheRanks) {
  EXPECT_NE(cpu_wait_reason(false).find("other work"), std::string::npos);
  EXPECT_EQ(cpu_wait_reason(true).find("other work"), std::string::npos);
}

/// Three busy threads that may use one CPU only: at least two of three wait at any time.
TEST(CpuWait, OfThreadsThatShareOneCpuIsMostOfTheirTime) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  const PartSinceLast wait = watch_cpu_wait();
  std::atomic<bool> ends = false;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        sched_setaffinity(0, sizeof one, &one);
        while (!ends) {
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    const auto part = wait();
    ends = true;
    if (!part) GTEST_SKIP() << "this system does not tell";
    EXPECT_GT(*part, 0.5);
    EXPECT_LT(*part, 1);
  }
}

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
  const PartSinceLast stolen = watch_stolen({});
  const auto part = stolen();
  if (!part) GTEST_SKIP() << "this system does not tell";
  EXPECT_GE(*part, 0);
  EXPECT_LE(*part, 1);
}

}  // namespace
}  // namespace cputrain::system
