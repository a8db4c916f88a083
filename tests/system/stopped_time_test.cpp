#include "system/signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "system/clock.h"
#include "tests/support/in_a_child.h"

namespace cputrain::system {
namespace {

/// Whether /proc/PID/stat says T. By calls of the system alone: a child of several threads asks.
bool is_stopped(const char* stat) {
  char text[512];
  const int file = ::open(stat, O_RDONLY | O_CLOEXEC);
  const ssize_t size = ::read(file, text, sizeof(text));
  ::close(file);
  return size > 0 && std::string_view(text, static_cast<std::size_t>(size)).find(") T ") !=
                         std::string_view::npos;
}

/// Stops this process, which somebody else lets go on later.
void stop_for(std::chrono::milliseconds time) {
  const std::string stat = "/proc/" + std::to_string(::getpid()) + "/stat";
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    while (::getppid() == parent && !is_stopped(stat.c_str())) ::sched_yield();
    std::this_thread::sleep_for(time);
    if (::getppid() == parent) ::kill(parent, SIGCONT);
    ::_exit(0);
  }
  ::raise(SIGSTOP);
  ::waitpid(child, nullptr, 0);
}

/// 0 where what was seen is what was done.
int stopped_and_seen() {
  StoppedTime stopped;
  const Stopwatch watch;
  const std::jthread looks([&](const std::stop_token& end) {
    while (!end.stop_requested()) {
      stopped.look();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  const double before = stopped.look();
  stop_for(std::chrono::milliseconds(600));
  const double after = stopped.look();
  if (after - before < 0.5) return 1;
  return after > watch.seconds() ? 2 : 0;
}

// In a child: a shell would take a stopped test for one that a person stopped.
TEST(StoppedTime, IsThatInWhichNothingRan) { EXPECT_EQ(testing::in_a_child(stopped_and_seen), 0); }

}  // namespace
}  // namespace cputrain::system
