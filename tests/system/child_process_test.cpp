#include "system/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <thread>
#include <utility>

#include "core/error.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::system {
namespace {

class ChildProcessTest : public ::testing::Test {
 protected:
  int run(const std::vector<std::string>& words, const std::vector<std::string>& environment = {}) {
    ChildProcess child(words, environment, log_);
    while (!child.exit_code()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return *child.exit_code();
  }
  std::string said() const { return testing::text_of(log_); }

  const testing::TemporaryFolder folder_;
  const std::filesystem::path log_ = folder_.path() / "log";
};

TEST_F(ChildProcessTest, RunsWithTheseWordsAndThisEnvironmentOnly) {
  EXPECT_EQ(run({"sh", "-c", "echo \"$0 $GIVEN $HOME\"; echo trouble >&2; exit 7", "a b"},
                {"GIVEN=here"}),
            7);
  EXPECT_EQ(said(), "a b here \ntrouble\n");
}

TEST_F(ChildProcessTest, ASignalIsAnExitCodeAsInAShell) {
  EXPECT_EQ(run({"sh", "-c", "kill -9 $$"}), 137);
  ChildProcess child({"sleep", "100"}, {}, log_);
  EXPECT_FALSE(child.exit_code());
  child.send(SIGTERM);
  while (!child.exit_code()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(*child.exit_code(), 143);
  child.send(SIGTERM);  // nobody else's process gets it
}

/// What this process does about a signal from here on to the end of the scope.
class Disposition {
 public:
  explicit Disposition(int signal, void (*action)(int) = SIG_IGN)
      : signal_(signal), before_(::signal(signal, action)) {}
  ~Disposition() { ::signal(signal_, before_); }
  Disposition(const Disposition&) = delete;
  Disposition& operator=(const Disposition&) = delete;

 private:
  int signal_;
  void (*before_)(int);
};

TEST_F(ChildProcessTest, NoSignalIsBlockedOrIgnoredInIt) {
  sigset_t set;
  sigfillset(&set);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  {
    const Disposition hangup(SIGHUP, SIG_DFL), pipe(SIGPIPE), interrupt(SIGINT), quit(SIGQUIT),
        end(SIGTERM), one(SIGUSR1), two(SIGUSR2);
    EXPECT_EQ(run({"sh", "-c", "grep -E 'SigBlk|SigIgn' /proc/self/status"}), 0);
  }
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  EXPECT_EQ(said(), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_F(ChildProcessTest, OutlivesTheTerminalWhereThisProcessDoes) {
  const Disposition hangup(SIGHUP);
  EXPECT_EQ(run({"grep", "-E", "SigBlk|SigIgn", "/proc/self/status"}), 0);
  // A bit a signal; SIGHUP is the first.
  EXPECT_EQ(said(), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\n");
}

TEST_F(ChildProcessTest, HasAGroupOfItsOwnWhereTheTerminalsSignalIsIgnored) {
  const auto group = [&] {  // its own number stands before its group's
    EXPECT_EQ(run({"cut", "-d", " ", "-f", "1,5", "/proc/self/stat"}), 0);
    std::istringstream line(said());
    std::pair<int, int> both;
    line >> both.first >> both.second;
    return both;
  };
  EXPECT_EQ(group().second, ::getpgrp());
  const Disposition hangup(SIGHUP);
  const auto [process, own] = group();
  EXPECT_EQ(own, process);
}

TEST_F(ChildProcessTest, WhatCannotBeStartedIsAnError) {
  EXPECT_THROW(run({"no such program"}), Error);
  EXPECT_THROW(run({folder_.path().string()}), Error);  // a folder
  EXPECT_FALSE(program_exists("no such program"));
  EXPECT_TRUE(program_exists("sh"));
}

TEST_F(ChildProcessTest, DiesWithItsOwner) {
  int id = 0;
  {
    ChildProcess child({"sh", "-c", "echo $$; exec sleep 100"}, {}, log_);
    while (said().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    id = std::stoi(said());
    EXPECT_EQ(::kill(id, 0), 0);
  }
  EXPECT_NE(::kill(id, 0), 0);
}

}  // namespace
}  // namespace cputrain::system
