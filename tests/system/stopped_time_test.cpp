#include "system/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "system/clock.h"
#include "tests/support/in_a_child.h"

namespace cputrain::system {
namespace {

/// As /proc has it: T is stopped.
char state_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return text[text.rfind(')') + 2];
}

/// Stops this process, which somebody else lets go on later.
void stop_for(std::chrono::milliseconds time) {
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    while (state_of(parent) != 'T') std::this_thread::yield();
    std::this_thread::sleep_for(time);
    ::kill(parent, SIGCONT);
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
