#include "system/usage/work_meter.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/support/temporary_folder.h"

namespace cputrain::system {
namespace {

/// The line of proc(5): the number, the name, the state, ten fields, the 12th: major faults, one,
/// the 14th and 15th: ticks of CPU time.
std::string stat_line(const std::string& name, char state) {
  return "71 (" + name + ") " + state + " 1 2 3 4 5 6 1000 0 8 0 150 50 0 0 20 0 1\n";
}

TEST(ThreadState, IsReadFromTheKernelsLines) {
  const auto found = thread_state(stat_line("watch", 'S'), "2000000000 500000000 7\n");
  EXPECT_EQ(found, (ThreadState{71, "watch", 'S', 8, 2, 0.5}));
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  for (const char* uncounted : {"", "0 0 0\n", "x"}) {
    EXPECT_EQ(thread_state(stat_line("a) R (b", 'R'), uncounted),
              (ThreadState{71, "a) R (b", 'R', 8, 200 / ticks, {}}));
  }
  for (const char* odd : {"", "71", "71 (x)", ") 71 (", "71 (x) S 1 2 3"}) {
    EXPECT_FALSE(thread_state(odd, "1 1 1")) << odd;
  }
}

ThreadState thread(char state, double ran, std::optional<double> waited, std::uint64_t faults = 0) {
  return {.thread = 1, .state = state, .faults = faults, .ran = ran, .waited = waited};
}

double cpu(const ThreadState& before, const ThreadState& after) {
  return shortage_between({before}, {after}, 10).cpu;
}

TEST(Shortage, OfACpuIsWhatTheSystemCounts) {
  EXPECT_DOUBLE_EQ(cpu(thread('R', 5, 1), thread('R', 6, 9)), 8);
  EXPECT_DOUBLE_EQ(cpu(thread('R', 5, 1), thread('S', 6, 9)), 8);
  EXPECT_DOUBLE_EQ(cpu(thread('S', 5, 1), thread('S', 5, 1)), 0);
  EXPECT_DOUBLE_EQ(cpu(thread('D', 5, 1), thread('D', 5, 1)), 0);
  // A long wait is counted when it is over.
  EXPECT_DOUBLE_EQ(cpu(thread('R', 5, 1), thread('S', 6, 100)), 10);
}

TEST(Shortage, WhoHadNoTurnAtAllHasWaitedAllTheTime) {
  EXPECT_DOUBLE_EQ(cpu(thread('R', 5, 1), thread('R', 5, 1)), 10);
  EXPECT_DOUBLE_EQ(cpu(thread('R', 5, 1), thread('T', 5, 1)), 0);  // it is stopped
  EXPECT_DOUBLE_EQ(cpu(thread('S', 5, 1), thread('R', 5, 1)), 0);  // it has only just woken
}

TEST(Shortage, WhereNothingIsCountedTheStateTells) {
  EXPECT_DOUBLE_EQ(cpu(thread('R', 5, {}), thread('R', 7, {})), 8);
  EXPECT_DOUBLE_EQ(cpu(thread('R', 5, {}), thread('S', 7, {})), 0);
  EXPECT_DOUBLE_EQ(cpu(thread('S', 5, {}), thread('R', 7, {})), 0);
  EXPECT_DOUBLE_EQ(cpu(thread('R', 5, {}), thread('R', 25, {})), 0);
}

TEST(Shortage, IsThatOfTheThreadThatLacksMost) {
  std::vector<ThreadState> before{thread('S', 1, 1), thread('S', 1, 1)}, after = before;
  before[1].thread = after[1].thread = 2;
  after[1].waited = 4;
  after.push_back({.thread = 3, .state = 'R', .faults = 9, .ran = 1, .waited = 99});  // it is new
  const Shortage found = shortage_between(before, after, 10);
  EXPECT_DOUBLE_EQ(found.cpu, 3);
  EXPECT_FALSE(found.pages);
}

TEST(Shortage, OfMemoryIsSeenByPagesThatAreReadBack) {
  EXPECT_TRUE(shortage_between({thread('D', 1, 1, 7)}, {thread('D', 1, 1, 8)}, 10).pages);
  EXPECT_FALSE(shortage_between({thread('D', 1, 1, 7)}, {thread('D', 1, 1, 7)}, 10).pages);
}

TEST(ThreadState, OfThisProcessHasThisThread) {
  const auto found = thread_states("self");
  EXPECT_EQ(std::ranges::count(found, ::gettid(), &ThreadState::thread), 1);
  EXPECT_EQ(thread_states(std::to_string(::getpid())).size(), found.size());
  EXPECT_TRUE(thread_states("0").empty());
}

TEST(ThreadState, OfOneThatEndsWhileItIsReadIsLeftOut) {
  // A folder can be opened and not be read, as the file of a thread that has ended since.
  const testing::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "task" / "1" / "stat");
  EXPECT_TRUE(thread_states(".." + folder.path().string()).empty());
}

}  // namespace
}  // namespace cputrain::system
