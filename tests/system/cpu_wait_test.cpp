#include "system/lost_time.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace cputrain::system {
namespace {

/// Of each: number, time it ran and waited.
std::optional<double> part_of(const std::vector<std::array<int, 3>>& before,
                              const std::vector<std::array<int, 3>>& after) {
  std::vector<ThreadState> states[2];
  for (const auto& [number, ran, waited] : before) {
    states[0].push_back({.thread = number, .ran = double(ran), .waited = waited});
  }
  for (const auto& [number, ran, waited] : after) {
    states[1].push_back({.thread = number, .ran = double(ran), .waited = waited});
  }
  return waited_part(states[0], states[1]);
}

TEST(CpuWait, IsThePartOfTheTimeForWhichThreadsWantedACpu) {
  const std::vector<std::array<int, 3>> before{{1, 100, 50}, {2, 1000, 0}};
  EXPECT_DOUBLE_EQ(*part_of(before, {{1, 190, 60}, {2, 1090, 10}}), 0.1);
  EXPECT_DOUBLE_EQ(*part_of(before, {{1, 200, 150}, {2, 1000, 0}}), 0.5);  // the other slept
  EXPECT_DOUBLE_EQ(*part_of(before, {{1, 175, 50}, {2, 1000, 0}}), 0);
}

TEST(CpuWait, ThreadsComeAndGo) {
  const std::vector<std::array<int, 3>> before{{1, 100, 50}, {2, 1000, 900}};
  // 2 has ended, 3 is new and counts from its beginning.
  EXPECT_DOUBLE_EQ(*part_of(before, {{1, 160, 60}, {3, 15, 15}}), 25.0 / 100);
  // Another thread has the number of one that has ended.
  EXPECT_DOUBLE_EQ(*part_of(before, {{2, 30, 10}}), 0.25);
}

TEST(CpuWait, IsNotKnownWhereNothingIsCounted) {
  EXPECT_FALSE(part_of({}, {}));
  EXPECT_FALSE(part_of({{1, 5, 5}}, {}));
  EXPECT_FALSE(part_of({}, {{1, 0, 0}}));  // a kernel that keeps no such statistics
  EXPECT_FALSE(part_of({{1, 0, 0}}, {{1, 0, 0}}));
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
  CpuWait wait;
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
    const auto part = wait.part_since_last();
    ends = true;
    if (!part) GTEST_SKIP() << "this system does not tell";
    EXPECT_GT(*part, 0.5);
    EXPECT_LT(*part, 1);
  }
}

}  // namespace
}  // namespace cputrain::system
