#include "comm/watch/own_account.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "system/clock.h"

namespace cputrain::watch {
namespace {

/// A rank whose working thread does something, while another looks at it.
class OwnAccountTest : public ::testing::Test {
 protected:
  /// What it reports at the end of some looks.
  Report while_it(const std::function<void(comm::Pulse&, const std::atomic<bool>& ends)>& works) {
    std::atomic<bool> ends = false;
    std::promise<OwnAccount> made;
    std::jthread working([&] {
      const auto pulse = std::make_shared<comm::Pulse>();
      made.set_value(OwnAccount(pulse, limits_));
      works(*pulse, ends);
    });
    OwnAccount account = made.get_future().get();
    Report report;
    const system::Stopwatch clock;
    while (clock.seconds() < 1.2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      report = account.look(clock.seconds());
    }
    ends = true;
    ends.notify_all();
    return report;
  }

  const Limits limits_{.warning = 1, .timeout = 2};  // looks closer each 0.17 s
};

void use_one_cpu() {
  cpu_set_t all, one;
  CPU_ZERO(&one);
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  ::sched_setaffinity(0, sizeof one, &one);
}

void compute(const std::atomic<bool>& ends) {
  use_one_cpu();
  while (!ends) continue;
}

/// So many threads on one CPU.
std::vector<std::jthread> crowd(int threads, const std::atomic<bool>& ends) {
  std::vector<std::jthread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back([&ends] { compute(ends); });
  return all;
}

TEST_F(OwnAccountTest, WhoSleepsLacksNothing) {
  const Report report =
      while_it([](comm::Pulse&, const std::atomic<bool>& ends) { ends.wait(false); });
  EXPECT_EQ(report.lacks, Cause::none);
  EXPECT_GT(report.idle, limits_.hangs_after());
  EXPECT_GT(report.fair, report.still / 2);
}

TEST_F(OwnAccountTest, WhoSharesACpuWithManyLacksOne) {
  const Report report = while_it([](comm::Pulse&, const std::atomic<bool>& ends) {
    const auto others = crowd(5, ends);
    compute(ends);
  });
  EXPECT_EQ(report.lacks, Cause::cpu);
  EXPECT_LT(report.fair, report.still / 2);
  EXPECT_LT(report.idle, limits_.hangs_after());
}

/// It spins in vain, while the working thread hangs.
TEST_F(OwnAccountTest, AHelperThatWaitsForOthersIsNoReason) {
  const Report report = while_it([](comm::Pulse& pulse, const std::atomic<bool>& ends) {
    const auto others = crowd(5, ends);
    const std::jthread helper([&] {
      const comm::Pulse::Meeting meeting(pulse);
      compute(ends);
    });
    ends.wait(false);
  });
  EXPECT_EQ(report.lacks, Cause::none);
  EXPECT_GT(report.idle, limits_.hangs_after());
}

}  // namespace
}  // namespace cputrain::watch
