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

void stay_on_first_cpu() {
  cpu_set_t allowed, first;
  ::sched_getaffinity(0, sizeof(allowed), &allowed);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) ++cpu;
  CPU_ZERO(&first);
  CPU_SET(cpu, &first);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(first), &first), 0);
}

/// Gives way until it has slept ten times, or the time is over.
bool sleeps_within(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  const long before = sleeps();
  while (sleeps() < before + 10) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::sched_yield();
  }
  return true;
}

TEST(GivingWay, SleepsWhereAnotherThreadComputesOnItsCpu) {
  std::atomic<bool> ends = false;
  std::thread([&] {  // whose place later tests do not inherit
    stay_on_first_cpu();
    std::jthread computes([&] {
      while (!ends) continue;
    });
    EXPECT_FALSE(sleeps_within(std::chrono::milliseconds(200)));  // nobody has asked for it
    sleep_where_cores_are_wanted();
    EXPECT_TRUE(sleeps_within(std::chrono::seconds(20)));
    ends = true;
  })
      .join();
}

}  // namespace
}  // namespace cputrain::mpi
