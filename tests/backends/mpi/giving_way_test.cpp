#include "backends/mpi/giving_way.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

namespace cputrain::mpi {
namespace {

/// How often the calling thread has slept: a yield alone does not count as voluntary.
long sleeps() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

void stay_on_this_cpu() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(::sched_getcpu(), &here);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(here), &here), 0);
}

/// Gives way for some time; ends early once it has slept ten times, which is true then.
bool sleeps_within(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  const long before = sleeps();
  while (sleeps() < before + 10) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::sched_yield();
  }
  return true;
}

TEST(GivingWay, SleepsWhileAnotherThreadComputesOnItsCpu) {
  sleep_where_cores_are_wanted();
  std::atomic<bool> ends = false;
  std::thread([&] {  // whose place later tests do not inherit
    stay_on_this_cpu();
    std::thread computes([&] {
      while (!ends) continue;
    });
    EXPECT_TRUE(sleeps_within(std::chrono::seconds(20)));
    ends = true;
    computes.join();
  })
      .join();
}

TEST(GivingWay, TwoLongTurnsAreBelievedForAWhile) {
  TurnsOfOthers turns;
  const TurnsOfOthers::Time start = std::chrono::steady_clock::now();
  const auto at = [&](double milliseconds) {
    return start + std::chrono::microseconds(std::llround(1000 * milliseconds));
  };
  for (int i = 0; i < 100; ++i) turns.gave_way(at(i), at(i + 0.4));  // short ones, all the time
  EXPECT_FALSE(turns.sleeps(at(101)));
  turns.gave_way(at(200), at(203));
  EXPECT_FALSE(turns.sleeps(at(204)));  // one alone
  turns.gave_way(at(400), at(403));
  EXPECT_FALSE(turns.sleeps(at(404)));  // and another, long after it
  turns.gave_way(at(450), at(453));
  EXPECT_TRUE(turns.sleeps(at(454)));
  EXPECT_TRUE(turns.sleeps(at(552)));
  EXPECT_FALSE(turns.sleeps(at(554)));
}

}  // namespace
}  // namespace cputrain::mpi
