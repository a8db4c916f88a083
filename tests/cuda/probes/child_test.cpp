#include "cuda/probes/child.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace cputrain::cuda::probes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// This program again, for one of the cases below.
std::vector<std::string> only(const std::string& name) {
  return {"--gtest_also_run_disabled_tests", "--gtest_filter=InAChild.DISABLED_" + name};
}

TEST(InAChild, DISABLED_Speaks) {
  std::printf("first\n\nwithout an end");
  std::fflush(stdout);
  std::_Exit(3);
}

TEST(InAChild, DISABLED_Hangs) {
  std::printf("begun\n");
  std::fflush(stdout);
  while (true) std::this_thread::sleep_for(seconds(1));
}

TEST(InAChild, DISABLED_Crashes) { std::raise(SIGKILL); }

/// What the child prints from the line on that `after` is, which its test framework precedes.
std::vector<std::string> lines_after(Child& child, const std::string& after,
                                     Clock::time_point until, Child::Read& last) {
  std::vector<std::string> lines;
  bool begun = false;
  std::string line;
  while ((last = child.read_line(line, until)) == Child::Read::line) {
    begun = begun || line == after;
    if (begun) lines.push_back(line);
  }
  return lines;
}

TEST(Children, AreReadToTheEnd) {
  Child child(only("Speaks"));
  const auto until = Clock::now() + seconds(60);
  Child::Read last;
  EXPECT_EQ(lines_after(child, "first", until, last),
            (std::vector<std::string>{"first", "", "without an end"}));
  EXPECT_EQ(last, Child::Read::end);
  EXPECT_EQ(child.exit_code(until), 3);
}

TEST(Children, WhoHangAreLate) {
  Child child(only("Hangs"));
  std::string line;
  while (line != "begun") {
    ASSERT_EQ(child.read_line(line, Clock::now() + seconds(60)), Child::Read::line);
  }
  EXPECT_EQ(child.read_line(line, Clock::now() + milliseconds(50)), Child::Read::late);
  EXPECT_EQ(child.exit_code(Clock::now() + milliseconds(50)), std::nullopt);
}

TEST(Children, WhoCrashHaveASignal) {
  Child child(only("Crashes"));
  const auto until = Clock::now() + seconds(60);
  Child::Read last;
  lines_after(child, "", until, last);
  EXPECT_EQ(last, Child::Read::end);
  EXPECT_EQ(child.exit_code(until), 128 + SIGKILL);
}

}  // namespace
}  // namespace cputrain::cuda::probes
