#include "comm/watch/storage.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace cputrain::watch {
namespace {

/// A thread of which nothing moves unless a test says so.
system::ThreadState asleep(int thread, const std::string& name = "cputrain") {
  return {.thread = thread, .name = name, .state = 'S', .ran = 1, .waited = 1};
}

/// A rank whose working thread hangs, with threads that are made up.
class OwnAccountTest : public ::testing::Test {
 protected:
  /// For so many looks, 10 s apart; `change` is made to the threads before each.
  template <typename Change>
  Report after(int looks, const Change& change) {
    for (int i = 0; i < looks; ++i) {
      change();
      report_ = account_.look(now_ += kSeconds);
    }
    return report_;
  }

  static constexpr double kSeconds = 10;
  static constexpr int kLooks = 6;
  const Limits limits_{.warning = 60, .timeout = 600};  // looks closer each 10 s
  const std::shared_ptr<comm::Pulse> pulse_ = std::make_shared<comm::Pulse>();
  std::vector<system::ThreadState> threads_{asleep(::gettid()), asleep(1)};
  system::ThreadState& working_ = threads_.front();
  system::ThreadState& other_ = threads_.back();
  bool launcher_stands_ = false;
  OwnAccount account_{pulse_,
                      limits_,
                      {.threads = [this] { return threads_; },
                       .launcher_stands = [this] { return launcher_stands_; }}};
  double now_ = 0;
  Report report_{};

  void expect_hung(const Report& report) const {
    EXPECT_EQ(report.lacks, Cause::none);
    EXPECT_GE(report.idle, limits_.hangs_after());
  }
  void expect_lack(const Report& report, Cause lack) const {
    EXPECT_EQ(report.lacks, lack);
    EXPECT_EQ(report.idle, 0);
  }
};

TEST_F(OwnAccountTest, WhoSleepsLacksNothing) {
  pulse_->moved();
  const Report report = after(kLooks, [] {});
  expect_hung(report);
  EXPECT_DOUBLE_EQ(report.still, (kLooks - 1) * kSeconds);
  EXPECT_DOUBLE_EQ(report.fair, (kLooks - 2) * kSeconds);  // the first look has nothing to compare
}

TEST_F(OwnAccountTest, AFirstLookThatComesLateProvesNothing) {
  pulse_->moved();
  after(1, [] {});
  now_ += limits_.timeout;  // the watch itself had no CPU
  EXPECT_EQ(after(1, [] {}).idle, 0);
  expect_hung(after(kLooks, [] {}));
}

TEST_F(OwnAccountTest, WhoWaitsForACpuMostOfTheTimeLacksOne) {
  for (system::ThreadState* thread : {&working_, &other_}) {
    pulse_->moved();
    const Report report = after(kLooks, [&] { *thread->waited += 0.8 * kSeconds; });
    expect_lack(report, Cause::cpu);
    EXPECT_NEAR(report.fair, 0.2 * (kLooks - 2) * kSeconds, 1e-9);
  }
}

TEST_F(OwnAccountTest, ThreadsThatLookAroundAreNoReason) {
  for (const char* name : {"watch", "output", "signals"}) {
    other_ = asleep(1, name);
    pulse_->moved();
    expect_hung(after(kLooks, [&] {
      other_.state = 'R';
      *other_.waited += 0.8 * kSeconds;
    }));
  }
  working_.name = "watch";  // as a program may be called
  expect_lack(after(2, [&] { *working_.waited += 0.8 * kSeconds; }), Cause::cpu);
}

/// It spins in vain, while the working thread hangs.
TEST_F(OwnAccountTest, AHelperThatWaitsForOthersIsNoReason) {
  pulse_->moved();
  std::unique_ptr<comm::Pulse::Meeting> meeting;
  std::jthread([&] { meeting = std::make_unique<comm::Pulse::Meeting>(*pulse_); }).join();
  expect_hung(after(kLooks, [&] { *other_.waited += 0.8 * kSeconds; }));
  meeting.reset();
  expect_lack(after(kLooks, [&] { *other_.waited += 0.8 * kSeconds; }), Cause::cpu);
}

TEST_F(OwnAccountTest, WhoReadsPagesBackOrHasALauncherThatStandsFindsNoMessage) {
  pulse_->moved();
  const Report memory = after(kLooks, [&] { ++other_.faults; });
  expect_lack(memory, Cause::memory);
  EXPECT_EQ(memory.fair, 0);
  launcher_stands_ = true;
  const Report launcher = after(kLooks, [] {});
  expect_lack(launcher, Cause::launcher);
  EXPECT_EQ(launcher.fair, 0);
  launcher_stands_ = false;
  EXPECT_GT(after(1, [] {}).fair, 0);
}

/// What a process finds whose parent is stopped; `starts` is done by the parent before.
template <typename Starts>
bool launcher_stands_of_child(const Starts& starts) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    starts();
    if (::fork() == 0) {
      const Surroundings found = real_surroundings();
      const std::string above = std::to_string(::getppid());
      while (system::thread_states(above).front().state != 'T') continue;
      const char stands = found.launcher_stands() ? 1 : 0;
      ::_exit(::write(ends[1], &stands, 1) == 1 ? 0 : 1);
    }
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  ::close(ends[1]);
  char stands = 2;
  EXPECT_EQ(::read(ends[0], &stands, 1), 1);
  ::close(ends[0]);
  ::kill(parent, SIGCONT);
  ::waitpid(parent, nullptr, 0);
  return stands == 1;
}

TEST(Surroundings, OfARankHaveALauncherThatMayStand) {
  EXPECT_FALSE(real_surroundings().launcher_stands());
  EXPECT_FALSE(real_surroundings().threads().empty());
  EXPECT_TRUE(launcher_stands_of_child([] {
    ::setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  }));
  // A shell that somebody stopped keeps nobody waiting.
  EXPECT_FALSE(launcher_stands_of_child([] {}));
}

}  // namespace
}  // namespace cputrain::watch
