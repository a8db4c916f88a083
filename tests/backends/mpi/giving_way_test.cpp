#include "backends/mpi/giving_way.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
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

/// In one of several tries: other programs may want the CPU, too.
bool stays_awake() {
  for (int i = 0; i < 100; ++i) {
    if (!sleeps_within(std::chrono::milliseconds(200))) return true;
  }
  return false;
}

TEST(GivingWay, SleepsWhileAnotherThreadComputesOnItsCpu) {
  sleep_where_cores_are_wanted();
  std::atomic<bool> ends = false;
  std::thread([&] {  // whose place later tests do not inherit
    stay_on_this_cpu();
    EXPECT_TRUE(stays_awake());
    std::thread computes([&] {
      while (!ends) continue;
    });
    EXPECT_TRUE(sleeps_within(std::chrono::seconds(20)));
    ends = true;
    computes.join();
    EXPECT_TRUE(stays_awake());
  })
      .join();
}

}  // namespace
}  // namespace cputrain::mpi
