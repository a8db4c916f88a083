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

/// Long beside a message, short beside a step. The kernel adds some 50.
constexpr auto kSleep = std::chrono::microseconds(50);

std::atomic<bool> may_sleep = false;

int give_way() {
  thread_local TurnsOfOthers turns;
  const auto begin = std::chrono::steady_clock::now();
  if (may_sleep.load(std::memory_order_relaxed) && turns.sleeps(begin)) {
    const int error = errno;
    std::this_thread::sleep_for(kSleep);
    errno = error;
    return 0;
  }
  const auto result = static_cast<int>(::syscall(SYS_sched_yield));
  turns.gave_way(begin, std::chrono::steady_clock::now());
  return result;
}

}  // namespace

void sleep_where_cores_are_wanted() { may_sleep = true; }

void TurnsOfOthers::gave_way(Time begin, Time end) {
  // A turn takes milliseconds; interrupts take less. One alone may be an accident.
  constexpr auto kTurn = std::chrono::microseconds(500);
  constexpr auto kBelieved = std::chrono::milliseconds(100);
  if (end - begin <= kTurn) return;
  if (end - last_ < kBelieved) until_ = end + kBelieved;
  last_ = end;
}

}  // namespace cputrain::mpi

/// Takes the place of the C library's, for MPI and all other libraries of this process.
extern "C" int sched_yield() noexcept { return cputrain::mpi::give_way(); }
