#include "backends/mpi/giving_way.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

namespace cputrain::mpi {
namespace {

using Clock = std::chrono::steady_clock;

/// A turn of the scheduler takes milliseconds; interrupts take less than this.
constexpr auto kTurn = std::chrono::microseconds(500);
/// Long beside a message, short beside a step. The kernel adds some 50.
constexpr auto kSleep = std::chrono::microseconds(50);
/// Two turns within it are no accident. After it the core is tried again.
constexpr auto kBelieved = std::chrono::milliseconds(100);

std::atomic<bool> may_sleep = false;

int give_way() {
  thread_local Clock::time_point sleeps_until{}, last_turn{};
  const Clock::time_point start = Clock::now();
  if (start < sleeps_until) {
    const int error = errno;
    std::this_thread::sleep_for(kSleep);
    errno = error;
    return 0;
  }
  const auto result = static_cast<int>(::syscall(SYS_sched_yield));
  const Clock::time_point end = Clock::now();
  if (end - start > kTurn && may_sleep.load(std::memory_order_relaxed)) {
    if (end - last_turn < kBelieved) sleeps_until = end + kBelieved;
    last_turn = end;
  }
  return result;
}

}  // namespace

void sleep_where_cores_are_wanted() { may_sleep = true; }

}  // namespace cputrain::mpi

/// Takes the place of the C library's, for MPI and all other libraries of this process.
extern "C" int sched_yield() noexcept { return cputrain::mpi::give_way(); }
