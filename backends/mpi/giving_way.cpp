#include "backends/mpi/giving_way.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

/// A turn of the scheduler takes milliseconds; interrupts and waiting ranks take less than this.
constexpr auto kTurn = std::chrono::microseconds(500);
/// Long beside a message, short beside a step.
constexpr auto kSleep = std::chrono::microseconds(50);
/// After it the core is tried again.
constexpr auto kBelieved = std::chrono::milliseconds(100);

std::atomic<bool> may_sleep = false;

}  // namespace

void cputrain::mpi::sleep_where_cores_are_wanted() { may_sleep = true; }

/// The C library's, for all libraries of this process.
extern "C" int sched_yield() noexcept {
  thread_local Clock::time_point sleeps_until{};
  const Clock::time_point start = Clock::now();
  if (start < sleeps_until) {
    std::this_thread::sleep_for(kSleep);
    return 0;
  }
  const auto result = static_cast<int>(::syscall(SYS_sched_yield));
  const Clock::time_point end = Clock::now();
  if (end - start > kTurn && may_sleep.load(std::memory_order_relaxed))
    sleeps_until = end + kBelieved;
  return result;
}
