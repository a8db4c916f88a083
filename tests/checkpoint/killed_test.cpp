#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <set>

#include "checkpoint/folder.h"
#include "tests/checkpoint/made_up.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::checkpoint {
namespace {

namespace fs = std::filesystem;

enum class Ended { killed, by_itself, untraced };

/// Does `work` in a process that is killed before its call of the system number `call`, from 0.
Ended killed_at(int call, const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(1);
    ::raise(SIGSTOP);
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  for (int stop = 0; WIFSTOPPED(status) && stop < 2 * call + 1; ++stop) {  // before and behind each
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status) == 0 ? Ended::by_itself : Ended::untraced;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return Ended::killed;
}

/// What a resume finds.
void expect_something_whole(const fs::path& run) {
  const auto found = list(run);
  ASSERT_FALSE(found.empty());
  for (const Found& each : found) EXPECT_EQ(fault_of(each.folder), "") << each.folder;
  if (found.back().step == 5) {
    const std::set<std::string> states{"older", "newer"};
    EXPECT_TRUE(states.contains(text_of(found.back().folder / kStateName)));
  }
  remove_abandoned(run);
  EXPECT_EQ(entries(run), found.size());  // nothing else is left
}

// A checkpoint in the place of another, one more, and the first of them goes.
TEST(Killed, AtAnyCallOfTheSystemEveryNameIsOfAWholeCheckpoint) {
  const testing::TemporaryFolder before;
  make(before.path(), 5, "older");
  Ended ended = Ended::killed;
  int call = 0;
  for (; ended == Ended::killed; ++call) {
    SCOPED_TRACE(call);
    const testing::TemporaryFolder run;
    fs::copy(before.path(), run.path(), fs::copy_options::recursive);
    ended = killed_at(call, [&] {
      make(run.path(), 5, "newer");
      make(run.path(), 6);
      prune(run.path(), 6, 1);
    });
    if (ended == Ended::untraced) GTEST_SKIP() << "no ptrace here";
    expect_something_whole(run.path());
    if (ended == Ended::by_itself) {
      EXPECT_EQ(list(run.path()).front().step, 6u);
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(call, 50);  // there are more calls than these
}

}  // namespace
}  // namespace cputrain::checkpoint
